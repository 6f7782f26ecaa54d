"""Notaries for the tests of the notary, and one server of each kind for all of them."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from notary.ledger import schema
from notary.state import NotaryLimits
from tests.notary.running import Running, patient_waits
from tests.notary.samples import hooks, make_result
from tests.support.asking import Asker
from tests.support.notary_thread import LIMITS
from tests.support.played_workers import Workers
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

StartNotary = Callable[..., Running]


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A real Redis; each test has a prefix of its own, and leaves the server as it found it."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL; each test has a database of its own, and leaves the server as it found it."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database for the ledger of this test."""
    name = postgres_server.new_database()
    yield name
    postgres_server.give_back(name)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A new ledger in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.prepare(connection)
        yield connection


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Those of the gateway, which outlive its notaries."""
    workers = Workers(make_result)
    yield workers
    workers.close()


@pytest.fixture
def start_notary(tmp_path: Path) -> Iterator[StartNotary]:
    """Start a notary on a folder of the test, with these limits and settings; it is stopped at the end."""
    started: list[Running] = []

    def start(folder: str = "state", *, limits: NotaryLimits = LIMITS, **settings: Any) -> Running:
        started.append(Running(tmp_path / folder, limits=limits, **settings))
        return started[-1]

    yield start
    for running in started:
        running.close()


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary without webhooks."""
    return start_notary()


@pytest.fixture
def front(notary: Running) -> Asker:
    """Its front."""
    return notary.front


@pytest.fixture
def telling(start_notary: StartNotary) -> Running:
    """A notary with two endpoints."""
    return start_notary(webhooks=hooks("chat", "pager"))


@pytest.fixture
def patient_backends() -> Iterator[None]:
    """Notaries that `start` makes wait for Redis and PostgreSQL as long as that takes, and those for them, and so does
    whatever else connects from here: for tests that are not about what takes too long."""
    from notary.backends.postgres.place import PostgresConnection, PostgresTarget
    from notary.backends.redis.client import RedisTarget

    redis_waits, postgres_waits = patient_waits()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RedisTarget.__init__, "__defaults__", (redis_waits,))
        patch.setattr(PostgresTarget.__init__, "__defaults__", (postgres_waits,))
        patch.setattr(PostgresConnection.hurry, "__defaults__", (postgres_waits.unit,))
        yield
