"""The same with a ledger that they share in a real PostgreSQL."""

import pytest

from ipc.settings import LedgerSettings
from tests.support.postgres_server import PostgresServer


@pytest.fixture
def ledger(postgres_server: PostgresServer, database: str) -> LedgerSettings:
    """The database of this test."""
    return postgres_server.settings(database)
