"""A Redis in cluster mode: whatever a gateway keeps there lies in one slot, so that its scripts reach all of it."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ipc.operations.calls import Closed, UseProof
from tests.notary.backends.order import budgeted, left
from tests.notary.running import Running
from tests.notary.samples import (
    fresh_proof,
    held_and_claimed,
    make_denial,
    make_hold,
    make_issue,
    make_revoke,
)
from tests.support.gateway import wait_for
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer

SLOTS = 16384
PREFIX = "of.one:gateway_1"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RedisServer]:
    """A cluster of one node, which has all slots."""
    server = RedisServer(tmp_path / "node", "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    server.ask("CLUSTER", "ADDSLOTS", *range(SLOTS))
    wait_for(lambda: "cluster_state:ok" in str(server.ask("CLUSTER", "INFO")), "the cluster")
    yield server
    server.close()


def test_all_keys_of_a_gateway_lie_in_one_slot(node: RedisServer, tmp_path: Path) -> None:
    store = msgspec.structs.replace(node.settings, redis_prefix=PREFIX)
    notary = Running(tmp_path / "state", is_patient=True, store=store, dev_mode=True)
    try:
        front = notary.front
        session_id = front.ask(make_issue(max_calls=3, max_sessions=9)).session_id
        assert front.ask(UseProof(fresh_proof())).is_fresh
        assert isinstance(front.ask(budgeted(session_id)), Closed)
        assert left(notary, session_id) == 2
        assert front.ask(make_denial(held_and_claimed(front, front.front_id))) is not None
        front.ask(make_hold(calls_per_hour=9))
        front.ask(make_revoke())
        names = node.ask("KEYS", "*")
    finally:
        notary.close()
    kinds = {name.removeprefix(f"{{{PREFIX}}}:").split(":")[0] for name in names}
    assert kinds >= {"marker", "epoch", "unit", "proof", "budget", "calls", "sessions", "hold", "live", "ended"}
    assert {node.ask("CLUSTER", "KEYSLOT", name) for name in names} == {node.ask("CLUSTER", "KEYSLOT", PREFIX)}
