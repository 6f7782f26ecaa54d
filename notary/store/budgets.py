"""Session budgets in SQLite. Functions of a connection inside a transaction that is open."""

from ipc.backends.store import Budget
from notary.database import OpenTransaction

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


def open_budget(connection: OpenTransaction, session_id: str, max_calls: int, expires_at: float) -> None:
    """Create the counter of a new session."""
    connection.execute(
        "INSERT INTO budgets (session_id, max_calls, remaining, expires_at) VALUES (?, ?, ?, ?)",
        (session_id, max_calls, max_calls, expires_at),
    )


def read(connection: OpenTransaction, session_id: str) -> Budget:
    """Look without debiting."""
    row = connection.execute("SELECT remaining FROM budgets WHERE session_id = ?", (session_id,)).fetchone()
    return _NO_SESSION if row is None else Budget(found=True, debited=False, remaining=row[0])


def debit(connection: OpenTransaction, session_id: str) -> Budget:
    """Take one call when one is left."""
    before = read(connection, session_id)
    if before.remaining < 1:
        return before
    connection.execute("UPDATE budgets SET remaining = remaining - 1 WHERE session_id = ?", (session_id,))
    return Budget(found=True, debited=True, remaining=before.remaining - 1)


def refund(connection: OpenTransaction, session_id: str) -> Budget:
    """Give one call back, up to what the session began with; a session that is gone is not an error."""
    connection.execute(
        "UPDATE budgets SET remaining = remaining + 1 WHERE session_id = ? AND remaining < max_calls", (session_id,)
    )
    return read(connection, session_id)


def sweep(connection: OpenTransaction, now: float) -> bool:
    """Forget at most SWEPT_AT_ONCE budgets of sessions that are over. True when there may be more."""
    swept = connection.execute(
        "DELETE FROM budgets WHERE session_id IN"
        " (SELECT session_id FROM budgets WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
        (now, SWEPT_AT_ONCE),
    ).rowcount
    return swept == SWEPT_AT_ONCE
