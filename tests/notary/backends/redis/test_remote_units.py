"""When a notary looks at its Redis by itself, and what it makes of what it finds."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.settings import StoreSettings
from notary.backends.redis.scripts import RECOVER
from notary.backends.redis.stores import Stores
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.remote_units import POLL_SECONDS, RemoteUnits
from notary.state import NotaryState
from notary.store.contract import StoreGone
from tests.faults.between import REFUSES, Between
from tests.notary.running import HandClock, settings_in
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("patient_backends")


@pytest.fixture
def state(store: StoreSettings, way: Between, tmp_path: Path) -> Iterator[NotaryState]:
    """The remote units of a notary that reaches its Redis through `way`."""
    store = msgspec.structs.replace(store, redis_url=f"redis://127.0.0.1:{way.port}")
    state, _ = open_state(settings_in(tmp_path, store=store, dev_mode=True), HandClock())
    with closing(state.database):
        yield state
        stores_of(state).client.close()


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def units(state: NotaryState, now: list[float]) -> RemoteUnits:
    """Which have looked just now."""
    units = RemoteUnits(state, stores_of(state), PERFORMERS, lambda: now[0])
    assert units.patience() == 0.0
    units.tend()
    return units


def stores_of(state: NotaryState) -> Stores:
    assert state.stores is not None
    return state.stores


def test_it_looks_when_it_is_time_and_tells_of_what_others_have_changed(
    units: RemoteUnits, state: NotaryState, now: list[float], way: Between, redis_server: RedisServer
) -> None:
    before, recoveries = state.epoch, way.count(RECOVER.digest.encode())
    epoch = redis_server.ask("INCR", stores_of(state).keys.epoch)
    now[0] += POLL_SECONDS / 2
    assert (units.tend(), state.epoch, units.patience()) == (False, before, POLL_SECONDS / 2)
    now[0] += POLL_SECONDS / 2
    assert units.patience() == 0.0
    assert (units.tend(), state.epoch, units.patience()) == (True, epoch, POLL_SECONDS)
    now[0] += 2 * POLL_SECONDS
    assert units.patience() == 0.0
    assert (units.tend(), state.epoch) == (False, epoch), "nothing else has changed"
    assert way.count(RECOVER.digest.encode()) == recoveries, "there was nothing to undo"


def test_a_redis_that_is_gone_is_not_looked_at_and_taken_when_it_is_found(
    units: RemoteUnits, state: NotaryState, now: list[float], way: Between
) -> None:
    client = stores_of(state).client
    with way.failing(REFUSES), capture_logs() as lines:
        with pytest.raises(StoreGone):
            client.call("PING")
        lines.clear()
        for _ in range(3):
            now[0] += POLL_SECONDS
            assert not units.tend()
        assert (lines, client.is_taken) == ([], False)
    wait_for(lambda: client.is_there, "the connection")
    assert not client.is_taken
    now[0] += POLL_SECONDS
    assert not units.tend()
    assert (client.is_taken, stores_of(state).owes) == (True, False)
