"""A gateway with an edge before it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import Gateway, gateway
from tests.support.issued_tokens import behind_an_edge
from tests.support.upstream import Upstream, upstream


@pytest.fixture(scope="package")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="package")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("gate")
    with gateway(folder, behind_an_edge(folder, up)) as running:
        yield running


@pytest.fixture(scope="package")
def before(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("edge")
    roots = made_certificate(folder, "127.0.0.1")
    tls = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
    with edge(edge_config(folder, gate.ready["client_socket"], tls), roots) as running:
        yield running
