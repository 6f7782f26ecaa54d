"""One gateway and one upstream for all tests of a module, where a test does not break them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gateway import Bearer, Gateway, config_for, gateway
from tests.support.upstream import Upstream, upstream


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A running dev gateway."""
    folder: Path = tmp_path_factory.mktemp("gate")
    with gateway(folder, config_for(up.address)) as running:
        yield running


@pytest.fixture
def agent(gate: Gateway) -> Bearer:
    """A fresh lease."""
    return gate.agent()


@pytest.fixture
def operator(gate: Gateway) -> Bearer:
    """The dev operator."""
    return gate.operator()
