"""A Redis that lost its data, and two gateways on one ledger that have their store there."""

import pytest

from ipc.operations.calls import UseProof
from ipc.settings import StoreSettings
from tests.notary.backends.redis.test_faults import told
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, walk_of
from tests.notary.samples import fresh_proof
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.redis_server import RedisServer

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]
Two = tuple[Running, Running]


@pytest.fixture
def two(start: StartNotary, redis_server: RedisServer, store: StoreSettings) -> Two:
    """Gateways that do not look by themselves, and whose Redis has lost what it had."""
    one, other = start("one"), start("other")
    for running in (one, other):
        running.look_no_more()
    redis_server.ask("DEL", f"{{{store.redis_prefix}}}:marker")
    return one, other


def test_a_loss_of_redis_that_one_has_noticed_ends_the_leases_once(two: Two) -> None:
    one, other = two
    epoch = one.front.ask(UseProof(fresh_proof())).epoch
    assert epoch > 0
    assert other.front.ask(UseProof(fresh_proof())).epoch == one.front.ask(UseProof(fresh_proof())).epoch == epoch
    assert walk_of(one).total_events == 1, "the end of the leases"


def test_a_loss_of_redis_that_both_have_noticed_at_once_ends_the_leases_once(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    remote = one.remote
    was_renewed = remote._was_renewed

    def is_slower() -> bool:
        renewed = was_renewed()
        monkeypatch.undo()
        other.front.ask(UseProof(fresh_proof()))
        return renewed

    monkeypatch.setattr(remote, "_was_renewed", is_slower)
    with capture_logs() as lines:
        entered = one.front.ask(UseProof(fresh_proof()))
    assert entered.is_fresh
    assert [line["event"] for line in lines].count("every lease of before has ended") == 1, "who ended them tells of it"
    assert entered.epoch == other.front.ask(UseProof(fresh_proof())).epoch > 0
    assert walk_of(one).total_events == 1, "the end of the leases"


def test_a_redis_that_is_lost_again_before_the_other_has_looked_ends_the_leases_again(
    two: Two, redis_server: RedisServer, store: StoreSettings
) -> None:
    one, other = two
    first = one.front.ask(UseProof(fresh_proof())).epoch
    redis_server.ask("DEL", f"{{{store.redis_prefix}}}:marker")
    again = other.front.ask(UseProof(fresh_proof())).epoch
    assert again > first
    assert one.front.ask(UseProof(fresh_proof())).epoch == again
    assert walk_of(one).total_events == 2


def test_a_redis_that_lacks_the_last_unit_ends_the_leases_though_the_ledger_remembers_it(
    start: StartNotary, redis_server: RedisServer, store: StoreSettings
) -> None:
    one = start("one")
    before = one.front.ask(UseProof(fresh_proof())).epoch
    (unit,) = [name for name in redis_server.names(store.redis_prefix) if ":unit:" in name]
    redis_server.ask("HSET", unit, "number", "0")
    redis_server.ask("CLIENT", "KILL", "TYPE", "normal")
    wait_for(lambda: told(one, UseProof(fresh_proof())) == "", "the store")
    assert one.front.ask(UseProof(fresh_proof())).epoch > before
    assert walk_of(one).total_events == 1, "the end of the leases"
