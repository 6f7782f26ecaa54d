"""A notary's knowledge of its Redis between two units."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from notary.backends.redis.changes import Outdated, StoreLost
from notary.backends.sqlite import SqliteDatabase
from notary.store.contract import Store
from tests.notary.samples import NOW
from tests.notary.store.conftest import open_stores
from tests.notary.store.test_contract import approval
from tests.notary.store.test_keyed_calls import ROW
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.large


Act = Callable[[Store], object]
OUTDATED: dict[str, tuple[Act, Act, Act]] = {
    # what a unit reads, what it writes, and what another notary does meanwhile
    "what it has read": (
        lambda store: store.hold("apr_1"), lambda _: None, lambda theirs: theirs.store_hold(approval()),
    ),
    "the epoch": (lambda store: store.hold("apr_1"), lambda _: None, lambda theirs: theirs.raise_epoch(0)),
    "another call by a standing approval": (
        lambda store: (store.standing.get("sta_1"), store.standing.calls("sta_1")),
        lambda store: store.standing.count("sta_1"), lambda theirs: theirs.standing.count("sta_1"),
    ),
    "the end of a standing approval": (
        lambda store: (store.standing.get("sta_1"), store.standing.calls("sta_1")),
        lambda store: store.standing.count("sta_1"), lambda theirs: theirs.standing.put(replace(ROW, is_ended=True)),
    ),
    "one more standing approval": (
        lambda store: store.standing.listed(), lambda store: store.standing.put(replace(ROW, standing_id="sta_2")),
        lambda theirs: theirs.standing.put(replace(ROW, standing_id="sta_3")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTDATED)
def test_a_unit_that_others_outdate_leaves_nothing_to_be_undone(
    name: str, database: SqliteDatabase, redis_server: RedisServer, request: pytest.FixtureRequest
) -> None:
    reads, writes, change = OUTDATED[name]
    one, other = (open_stores(redis_server, request.node.name, notary) for notary in ("one", "other"))
    with database.unit() as connection:
        first = one.open(connection)
        first.standing.put(ROW)
        first.apply(1)
        one.confirm()
        store, theirs = one.open(connection), other.open(connection)
        reads(store)
        writes(store)
        change(theirs)
        theirs.apply(1)
        other.confirm()
        with pytest.raises(Outdated):
            store.apply(2)
    assert (one.owes, one.sent) == (False, None)
    for stores in (one, other):
        stores.client.close()


def test_a_redis_that_a_unit_finds_to_be_another_one_is_not_used_until_the_ledger_follows_it(
    database: SqliteDatabase, redis_server: RedisServer
) -> None:
    stores = open_stores(redis_server, "another")
    redis_server.ask("SET", stores.keys.marker, "another")
    with database.unit() as connection:
        store = stores.open(connection)
        assert store.use_proof("p", NOW)
        with pytest.raises(StoreLost):
            store.apply(1)
        with pytest.raises(StoreLost):
            stores.open(connection).confirm_epoch()
    assert redis_server.ask("EXISTS", stores.keys.proof("p")) == 0
    stores.follow("another")
    stores.check()
    stores.client.close()


def test_how_a_unit_would_be_undone_is_kept_until_the_ledger_has_it_and_erased_then(
    database: SqliteDatabase, redis_server: RedisServer
) -> None:
    stores = open_stores(redis_server, "undone")
    record = stores.keys.unit(stores.notary)
    with database.unit() as connection:
        store = stores.open(connection)
        store.store_hold(approval())
        store.apply(1)
        stores.tidy()
        assert redis_server.ask("HEXISTS", record, "undo") == 1
        assert (stores.owes, stores.sent) == (True, 1)
    store.confirm()
    assert (stores.owes, stores.sent) == (False, None)
    stores.tidy()
    assert redis_server.ask("HEXISTS", record, "undo") == 0
    stores.client.close()
