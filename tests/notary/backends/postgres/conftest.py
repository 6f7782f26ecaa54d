"""The same with a ledger that they share in a real PostgreSQL."""

from typing import Any

import pytest

from ipc.settings import LedgerSettings
from notary.backends.postgres.database import PostgresDatabase
from tests.notary.running import Running
from tests.support.postgres_server import PostgresServer


@pytest.fixture
def ledger(postgres_server: PostgresServer, database: str) -> LedgerSettings:
    """The database of this test."""
    return postgres_server.settings(database)


def postgres_of(notary: Running) -> tuple[PostgresDatabase, Any]:
    """Its database, and the connection that it writes on."""
    postgres = notary.thread.state.database
    assert isinstance(postgres, PostgresDatabase)
    assert postgres._line is not None
    return postgres, postgres._line
