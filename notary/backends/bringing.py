"""Brings over the store of an earlier version, which had proofs, budgets, approvals and the epoch in a file of its own.

The first start does so in one transaction, and only once; then it removes the old file. After a kill at any point, the
next start finds the old file and none of its rows here, or all of them here.
"""

import sqlite3
from pathlib import Path

from ipc.process.logs import log
from notary.backends.sqlite import SqliteDatabase, connect, file_uri
from notary.database import DatabaseGone
from notary.store import holds

_OLD_SCHEMA = 1
_TABLES = {
    "proofs": "bucket, key, expires_at",
    "budgets": "session_id, max_calls, remaining, expires_at",
}
_BESIDE = ("-wal", "-shm", ".turn", ".next")


def bring_store_over(database: SqliteDatabase, old: Path) -> None:
    """Bring `old` into the database, if it is there and was not brought before. Raises DatabaseGone."""
    if not old.exists():
        return
    try:
        connection = connect(database.path, writes=True)
    except sqlite3.Error as error:
        raise DatabaseGone(f"{database.path}: {error}") from error
    try:
        if connection.execute("SELECT 1 FROM meta WHERE key = 'store'").fetchone() is None:
            _bring(connection, old)
            log.info("an earlier store was brought into the ledger's file", path=str(old))
    except sqlite3.Error as error:
        raise DatabaseGone(f"{old}: could not be brought over: {error}") from error
    finally:
        connection.close()
    for suffix in (".turn", ".next"):
        database.path.with_name(database.path.name + suffix).unlink(missing_ok=True)
    for suffix in _BESIDE:
        old.with_name(old.name + suffix).unlink(missing_ok=True)
    # Last: a start that is killed on the way leaves the rest to the next one, which finds it by this file.
    old.unlink()


def _bring(connection: sqlite3.Connection, old: Path) -> None:
    """The caller closes the connection: that ends a transaction that failed, and lets go of the old file."""
    connection.execute("ATTACH DATABASE ? AS old", (file_uri(old, "rw"),))
    (version,) = connection.execute("PRAGMA old.user_version").fetchone()
    if version != _OLD_SCHEMA:
        raise DatabaseGone(f"{old}: not a store of an earlier version: its schema is {version}")
    if any(
        kind != "table" for (kind,) in connection.execute("SELECT type FROM pragma_table_list WHERE schema = 'old'")
    ):
        raise DatabaseGone(f"{old}: has a view or a virtual table, which no gateway makes")
    connection.execute("BEGIN IMMEDIATE")
    for table, columns in _TABLES.items():
        connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM old.{table}")  # noqa: S608
    holds.bring(connection, "old.approvals")
    connection.execute("UPDATE main.epochs SET epoch = (SELECT epoch FROM old.epochs)")
    connection.execute("INSERT INTO main.meta (key, value) VALUES ('store', 'here')")
    connection.execute("COMMIT")
