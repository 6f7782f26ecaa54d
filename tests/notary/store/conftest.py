"""The store of a notary, once in its ledger and once in a real Redis."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from notary.backends.redis.client import Client, RedisTarget, RedisTimeouts
from notary.backends.redis.keys import RedisKeys
from notary.backends.redis.stores import Stores
from notary.backends.sqlite import SqliteDatabase
from notary.ledger import schema
from notary.store.contract import Store
from notary.store.in_ledger import SqliteStore
from tests.notary.samples import NOW
from tests.support.gateway import WAIT_SECONDS
from tests.support.notary_thread import SMALL_WAL
from tests.support.redis_server import RedisServer

UnitOfStore = Callable[[], AbstractContextManager[Store]]
_prefixes = itertools.count()
PATIENT = RedisTimeouts(connect=WAIT_SECONDS, answer=WAIT_SECONDS)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """The ledger, which is open."""
    with closing(SqliteDatabase(tmp_path / "ledger.sqlite3", schema.prepare, SMALL_WAL)) as database:
        database.open()
        yield database


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.large)])
def unit(request: pytest.FixtureRequest, database: SqliteDatabase) -> Iterator[UnitOfStore]:
    """Begins a unit of the store; what it did is done when the block ends."""
    if request.param == "sqlite":

        @contextmanager
        def in_ledger() -> Iterator[Store]:
            with database.unit() as connection:
                yield SqliteStore(connection)

        yield in_ledger
    else:
        server: RedisServer = request.getfixturevalue("redis_server")
        stores = open_stores(server, f"contract-{next(_prefixes)}")
        yield lambda: unit_of(stores, database)
        stores.client.close()


@contextmanager
def unit_of(stores: Stores, database: SqliteDatabase) -> Iterator[Store]:
    """One in Redis."""
    stores.used.clear()
    with database.unit() as connection:
        store = stores.open(connection)
        yield store
        store.apply(1)
    store.confirm()


def open_stores(server: RedisServer, prefix: str, notary: str = "notary") -> Stores:
    """Those of one notary."""
    client = Client(RedisTarget(server.settings, PATIENT).connect)
    client.open()
    stores = Stores(client, RedisKeys(prefix), notary, lambda: NOW)
    stores.begin(None, 0, is_new=True)
    stores.recover(0, None)
    return stores
