"""A Redis that lost its data, and two gateways on one ledger that have their store there."""

from math import inf

import pytest

from ipc.messages import Enter
from ipc.settings import StoreSettings
from tests.notary.backends.postgres.conftest import StartNotary
from tests.notary.running import walk_of
from tests.notary.samples import fresh_proof
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.large


def test_a_loss_of_redis_that_one_has_noticed_ends_the_leases_once(
    start: StartNotary, redis_server: RedisServer, store: StoreSettings
) -> None:
    one, other = start("one"), start("other")
    for running in (one, other):
        assert running.thread is not None
        remote = running.thread._service._remote
        assert remote is not None
        remote._poll_at = inf  # neither looks by itself
    redis_server.ask("DEL", f"{{{store.redis_prefix}}}:marker")
    epoch = one.front.ask(Enter(fresh_proof())).epoch
    assert epoch > 0
    assert other.front.ask(Enter(fresh_proof())).epoch == one.front.ask(Enter(fresh_proof())).epoch == epoch
    assert walk_of(one).total_events == 1, "the end of the leases"
