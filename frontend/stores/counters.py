"""Session budgets in SQLite. Functions of a connection inside a transaction that is open."""

import sqlite3
from collections.abc import Callable

from frontend.stores.interface import Budget

TABLES = (
    """
    CREATE TABLE budgets (
        session_id TEXT PRIMARY KEY, max_calls INTEGER NOT NULL, remaining INTEGER NOT NULL, expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX budgets_by_expiry ON budgets (expires_at)",
)

SWEPT_AT_ONCE = 500

_NO_SESSION = Budget(found=False, debited=False, remaining=0)


def open_budget(session_id: str, max_calls: int, expires_at: float) -> Callable[[sqlite3.Connection], None]:
    """Create a counter. One that is there stays as it is: nobody gets a full budget twice."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO budgets (session_id, max_calls, remaining, expires_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (session_id) DO NOTHING",
            (session_id, max_calls, max_calls, expires_at),
        )

    return work


def read(session_id: str) -> Callable[[sqlite3.Connection], Budget]:
    """Look without debiting."""

    def work(connection: sqlite3.Connection) -> Budget:
        row = connection.execute("SELECT remaining FROM budgets WHERE session_id = ?", (session_id,)).fetchone()
        return _NO_SESSION if row is None else Budget(found=True, debited=False, remaining=row[0])

    return work


def debit(session_id: str) -> Callable[[sqlite3.Connection], Budget]:
    """Take one call when one is left."""

    def work(connection: sqlite3.Connection) -> Budget:
        before = read(session_id)(connection)
        if before.remaining < 1:
            return before
        connection.execute("UPDATE budgets SET remaining = remaining - 1 WHERE session_id = ?", (session_id,))
        return Budget(found=True, debited=True, remaining=before.remaining - 1)

    return work


def refund(session_id: str) -> Callable[[sqlite3.Connection], Budget]:
    """Give one call back, up to what the session began with."""

    def work(connection: sqlite3.Connection) -> Budget:
        connection.execute(
            "UPDATE budgets SET remaining = remaining + 1 WHERE session_id = ? AND remaining < max_calls", (session_id,)
        )
        return read(session_id)(connection)

    return work


def sweep(now: float) -> Callable[[sqlite3.Connection], bool]:
    """Forget at most SWEPT_AT_ONCE budgets of sessions that are over. True when there may be more."""

    def work(connection: sqlite3.Connection) -> bool:
        swept = connection.execute(
            "DELETE FROM budgets WHERE session_id IN"
            " (SELECT session_id FROM budgets WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
            (now, SWEPT_AT_ONCE),
        ).rowcount
        return swept == SWEPT_AT_ONCE

    return work
