"""One gateway for all tests of this folder, and the library's clients for it: over TCP and over its sockets."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from gateway_client import Address, AgentClient, OperatorClient, OperatorCredential

from tests.support.gateway import WAIT_SECONDS, Gateway, config_for, gateway
from tests.support.manifests import patient
from tests.support.upstream import Upstream, upstream


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds. A gateway is not ready while one of its processes is kept from answering for a moment."""
    with anyio.fail_after(WAIT_SECONDS):
        while not await condition():  # noqa: ASYNC110 (what is waited for has no event)
            await anyio.sleep(0.01)


@pytest.fixture(scope="package")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="package")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A running dev gateway whose calls may take as long as they like."""
    folder: Path = tmp_path_factory.mktemp("gate")
    with gateway(folder, config_for(up.address, patient(folder / "actions", text_digest={"preview": True}))) as running:
        yield running


@pytest.fixture(scope="package", params=["tcp", "unix"])
def agent_address(request: pytest.FixtureRequest, gate: Gateway) -> Address:
    """Where agents find the gateway: every test that asks for it runs over both transports."""
    if request.param == "tcp":
        return Address.parse(gate.base)
    return Address.parse(f"unix://{gate.ready['client_socket']}", gate.base)


@pytest.fixture(scope="package", params=["tcp", "unix"])
def operator_address(request: pytest.FixtureRequest, gate: Gateway) -> Address:
    """Where operators find the gateway: every test that asks for it runs over both transports."""
    if request.param == "tcp":
        return Address.parse(gate.base)
    return Address.parse(f"unix://{gate.ready['admin_socket']}", gate.base)


@pytest.fixture(scope="package")
def credential(gate: Gateway) -> OperatorCredential:
    """The dev operator's, from its two files."""
    return OperatorCredential.load(gate.state / "operator.key", gate.ready["operator"]["private_key_file"])


@pytest.fixture
def agent(gate: Gateway) -> Iterator[AgentClient]:
    """A fresh agent over TCP."""
    with AgentClient(gate.base) as client:
        yield client


@pytest.fixture
def operator(gate: Gateway, credential: OperatorCredential) -> Iterator[OperatorClient]:
    """The dev operator over TCP."""
    with OperatorClient(gate.base, credential) as client:
        yield client
