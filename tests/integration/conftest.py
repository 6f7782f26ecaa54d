"""One gateway and one upstream for all tests that do not break them, reconfigure them or count all they did.

A test sees events, holds and requests of other tests here. It recognizes its own by lease, trace or name.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc import messages as m
from ipc.events import AuditEvent
from tests.support.gateway import Bearer, Gateway, config_for, gateway
from tests.support.hostile_upstream import HostileUpstream, hostile_upstream
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.played_supervisor_of_notary import PlayedFront, PlayedSupervisor, checked_offline, played_supervisor
from tests.support.proofs import Key
from tests.support.proved_calls import lease_for
from tests.support.upstream import Upstream, upstream

LITTLE_FUEL = {"spin": {"resource_limits": {"fuel": 10_000_000}}}


@pytest.fixture(scope="session")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="session")
def shared(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A running dev gateway."""
    folder: Path = tmp_path_factory.mktemp("shared")
    with gateway(folder, config_for(up.address, patient(folder / "actions", **LITTLE_FUEL))) as running:
        yield running


@pytest.fixture(scope="session")
def shared_by_two(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The same with two fronts."""
    folder: Path = tmp_path_factory.mktemp("two")
    top = "front_processes = 2\n" + patient(folder / "actions", **LITTLE_FUEL)
    with gateway(folder, config_for(up.address, top)) as running:
        yield running


@pytest.fixture(scope="module", params=(1, 2), ids=("one front", "two fronts"))
def front_processes(request: pytest.FixtureRequest) -> int:
    """For modules whose tests hold whichever of several fronts is asked: they run with one and with two."""
    return int(request.param)


@pytest.fixture(scope="module")
def either(front_processes: int, request: pytest.FixtureRequest) -> Gateway:
    """The shared gateway, and then one with two fronts: for modules that say so by a `gate` of their own."""
    chosen: Gateway = request.getfixturevalue("shared" if front_processes == 1 else "shared_by_two")
    return chosen


@pytest.fixture(scope="module")
def gate(shared: Gateway) -> Gateway:
    """The gateway of this module: the one that all share, unless the module makes its own."""
    return shared


@pytest.fixture(scope="module")
def unharmed(gate: Gateway) -> Iterator[None]:
    """After any module the gateway has the same front as at the start, and no unexpected error in its log."""
    front, before = gate.child("front").pid, len(gate.log.read_text())
    yield
    assert gate.child("front").pid == front
    assert "Traceback" not in gate.log.read_text()[before:]


@pytest.fixture(scope="session")
def hostile() -> Iterator[HostileUpstream]:
    """An upstream that does what the path asks it to."""
    with hostile_upstream() as server:
        yield server


@pytest.fixture(scope="session")
def beset(hostile: HostileUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose upstream is hostile. It has two more variants of http_fetch: with 64 KiB for an answer, and with
    less than a second besides."""
    folder: Path = tmp_path_factory.mktemp("beset")
    top = patient(folder / "actions")
    small: dict[str, Any] = {"io": {"max_response_bytes": 65_536}}
    for action_id, limits in (("small_fetch", PATIENT), ("short_fetch", {"resource_limits": {"timeout_seconds": 0.4}})):
        write_manifests(folder / "actions", example("http_fetch", action_id=action_id, **small, **limits))
    top += f'policy_dir = "{open_policy(folder / "policy", "small_fetch", "short_fetch")}"\n'
    with gateway(folder, config_for(hostile.address, top)) as running:
        yield running


@pytest.fixture
def agent(gate: Gateway) -> Bearer:
    """A fresh lease."""
    return gate.agent()


@pytest.fixture
def operator(gate: Gateway) -> Bearer:
    """The dev operator."""
    return gate.operator()


@pytest.fixture(scope="module")
def key() -> Key:
    """The key that `lease` is bound to."""
    return Key()


@pytest.fixture(scope="module")
def lease(gate: Gateway, key: Key) -> str:
    """A good lease, with calls enough."""
    return lease_for(gate, key, budgets={"max_calls": 1000})


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[PlayedSupervisor]:
    """A notary whose chain is whole at the end, whatever was sent to it; it has not been surprised either."""
    with played_supervisor(tmp_path) as running:
        yield running
        assert running.process.poll() is None
        sound = running.attach("front-9-sound")
        sound.value(m.Note(AuditEvent(event_type="GatewayStopped", trace_id="trc_end", decision="allow")))
        assert running.stop() == 0
        checked_offline(Path(running.settings.state_dir))
        assert "Traceback" not in running.log.read_text()


@pytest.fixture
def front(supervisor: PlayedSupervisor) -> PlayedFront:
    """The one that was taken over."""
    return supervisor.attach("front-1-a")
