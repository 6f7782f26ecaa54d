"""The database of a running gateway, for tests that read or change its tables as a stranger does."""

import sqlite3
from contextlib import closing
from pathlib import Path

from notary.backends.sqlite import SqliteDatabase as SqliteDatabase
from notary.database import Database
from notary.ledger import page_ring, schema
from notary.ledger.settling import settle, unsettled
from tests.support.gateway import WAIT_SECONDS, wait_for
from tests.support.notary_thread import SMALL_WAL


def made_ledger(path: Path) -> Path:
    """The file, opened once as a ledger, as a start does."""
    database = SqliteDatabase(path, schema.prepare, SMALL_WAL)
    database.open()
    database.close()
    return path


def has_settled(path: Path) -> bool:
    """Settle everything that stands in the journal alone."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=WAIT_SECONDS)) as connection:
        return all(entry.is_settled for entry in unsettled(connection))


def wait_settled(path: Path) -> None:
    """Wait until everything that calls wrote is in its tables, as it is soon after the last of them."""
    wait_for(lambda: has_settled(path), "what is in the journal to come to its tables")


def settled(file: sqlite3.Connection) -> sqlite3.Connection:
    """The file itself, or a copy in memory in which nothing is left in the journal."""
    if not unsettled(file):
        return file
    copy = sqlite3.connect(":memory:")
    file.backup(copy)
    content = page_ring.read(copy)
    settle(copy, content.entries, content.last)
    return copy


def file_of(database: Database) -> Path:
    """Where a ledger lies that is a file."""
    assert isinstance(database, SqliteDatabase)
    return database.path
