"""One gateway for all tests of this folder, and gatectl with a context for it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_client import AgentClient, Held

from tests.support.gatectl import Gatectl, Ran
from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.upstream import Upstream, upstream


@pytest.fixture(scope="package")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="package")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A running dev gateway whose calls may take as long as they like."""
    folder = tmp_path_factory.mktemp("gate")
    with gateway(folder, config_for(up.address, patient(folder / "actions"))) as running:
        yield running


def sound(gatectl: Gatectl, *arguments: str) -> Ran:
    """The output of a command once the gateway is ready: it is not ready while one of its processes can't answer."""
    ran: Ran = wait_for(lambda: one if (one := gatectl.here(*arguments)).code == 0 else None, "a gateway that is ready")
    return ran


def write_ready(gate: Gateway, folder: Path) -> Path:
    file = folder / "ready.json"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    with open(descriptor, "w") as opened:
        json.dump(gate.ready, opened)
    return file


@pytest.fixture(scope="package")
def gatectl(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Gatectl:
    """gatectl whose current context is the gateway of this folder."""
    folder = tmp_path_factory.mktemp("home")
    program = Gatectl(folder)
    program.done("context", "from-ready", str(write_ready(gate, folder)))
    return program


@pytest.fixture
def empty(tmp_path: Path) -> Gatectl:
    """gatectl that knows no gateway."""
    return Gatectl(tmp_path / "config")


@pytest.fixture
def agent(gate: Gateway) -> Iterator[AgentClient]:
    """A fresh agent."""
    with AgentClient(gate.base) as client:
        yield client


_amounts = iter(range(30_000, 99_000))


@pytest.fixture
def held(agent: AgentClient) -> Held:
    """A payment that waits for an operator."""
    answer = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": next(_amounts), "currency": "EUR"})
    assert isinstance(answer, Held)
    return answer
