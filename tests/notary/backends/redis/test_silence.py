"""A Redis that takes connections and says nothing: it is waited for once, and for no longer than it may."""

import time
from pathlib import Path

from ipc.operations.status import ReadStore
from ipc.settings import StoreSettings
from notary.backends.redis.client import AGAIN_SECONDS
from tests.notary.backends.conftest import frozen
from tests.notary.backends.order import stores_of
from tests.notary.backends.redis.test_faults import check_fault, fresh, told
from tests.notary.backends.redis.test_fitness import check_sentences, refused
from tests.notary.running import Running
from tests.support.gateway import wait_for
from tests.support.redis_server import RedisServer

FRONTS_WAIT = 10.0
"""Seconds after which fronts give up."""


def test_operations_on_a_silent_store_are_refused_by_part_and_recover(
    notary: Running, redis_server: RedisServer
) -> None:
    check_fault(notary, frozen(redis_server))


def test_a_silent_redis_is_waited_for_less_than_fronts_wait_and_sought_by_who_holds_up_no_end(
    notary: Running, redis_server: RedisServer
) -> None:
    with frozen(redis_server):
        began = time.monotonic()
        assert told(notary, fresh()) == "store"
        assert time.monotonic() - began < FRONTS_WAIT
        seeker = stores_of(notary).client._seeker
        assert seeker is not None
        assert seeker.daemon, "a notary that crashes meanwhile does not wait for it"
        assert AGAIN_SECONDS <= 0.25, "it is looked for four times a second"
    wait_for(lambda: told(notary, ReadStore()) == "", "the store")


def test_check_and_start_report_a_plain_redis_that_does_not_answer_the_greeting_of_tls(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    store = StoreSettings(redis_url=f"rediss://localhost:{redis_server.port}")
    check_sentences(refused(tmp_path / "state", store), store, "Redis: ")
