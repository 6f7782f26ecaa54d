"""One gateway and one upstream for all tests that do not break them, reconfigure them or count all they did.

A test sees events, holds and requests of other tests here. It recognizes its own by lease, trace or name.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.texts.identifiers import new
from tests.support.gateway import Bearer, Gateway, config_for, gateway, wait_for
from tests.support.hostile_upstream import HostileUpstream, hostile_upstream
from tests.support.manifests import PATIENT, example, open_policy, patient, write_manifests
from tests.support.own_gateway import own_gateway, spared
from tests.support.played_supervisor_of_notary import PlayedFront, PlayedSupervisor, sound_notary
from tests.support.processes import CANARY, NOBODYS_GROUP, started
from tests.support.proofs import Key
from tests.support.proved_calls import lease_for
from tests.support.redis_server import RedisServer
from tests.support.upstream import Upstream, upstream

LITTLE_FUEL: dict[str, Any] = {"spin": {"resource_limits": {"fuel": 10_000_000}}}


@pytest.fixture(scope="session")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to."""
    with upstream() as server:
        yield server


shared = own_gateway(scope="session", **LITTLE_FUEL)
"""A running dev gateway."""


shared_by_two = own_gateway("front_processes = 2\n", scope="session", **LITTLE_FUEL)
"""The same with two fronts."""


@pytest.fixture(scope="module")
def gate(shared: Gateway) -> Gateway:
    """The gateway of this module: the one that all share, unless the module makes its own."""
    return shared


@pytest.fixture(scope="module")
def unharmed(gate: Gateway) -> Iterator[None]:
    """After the module the shared gateway is as it was before."""
    with spared(gate):
        yield


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


@pytest.fixture(scope="session")
def watched(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose processes are looked at from outside, after calls of every kind have been served.

    It was handed more than it may pass on: a descriptor, and a secret in its environment.
    """
    folder: Path = tmp_path_factory.mktemp("watched")
    with (folder / "inherited").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        more = {"pass_fds": (file.fileno(),), "group": NOBODYS_GROUP if os.geteuid() == 0 else None}
        config = config_for(up.address, patient(folder / "actions"))
        with started(folder, config, AWS_SECRET_ACCESS_KEY=CANARY, **more) as running:  # type: ignore[arg-type]
            calls_of_every_kind(running)
            yield running


def calls_of_every_kind(gate: Gateway) -> None:
    """Issue leases, execute, refuse, hold, approve, show a receipt and verify the chain."""
    agent, operator = gate.agent(max_calls=50), gate.operator()
    for action, body in (
        *[("text_digest", {"text": "x"})] * 10, ("file_write", {"path": "a", "content": "b"}),
        ("http_post", {"path": "a", "message": "b"}),
    ):  # fmt: skip
        assert agent.execute(action, body).status_code == 200
    assert agent.execute("no_such_action").status_code == 404
    held = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"})
    assert held.status_code == 202
    assert operator.post(f"/v1/approvals/{held.json()['approval_id']}/approve").status_code == 200
    receipt = agent.execute("text_digest", {"text": "y"}).json()["receipt_id"]
    assert operator.get(f"/v1/receipts/{receipt}").status_code == 200
    assert operator.get("/v1/audit/verify").json()["intact"] is True
    wait_for(lambda: not gate.children("reader"), "the end of the process that verified the chain")


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
    """A sound notary of the test's own."""
    with sound_notary(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_notary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedSupervisor]:
    """A sound notary for the tests of a module that compare before and after."""
    with sound_notary(tmp_path_factory.mktemp("notary")) as running:
        yield running


@pytest.fixture
def new_front(shared_notary: PlayedSupervisor) -> PlayedFront:
    """A front of `shared_notary` that was taken over."""
    return shared_notary.attach(new("front-"))


@pytest.fixture
def front(supervisor: PlayedSupervisor) -> PlayedFront:
    """The one that was taken over."""
    return supervisor.attach("front-1-a")


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis of this module's own."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()
