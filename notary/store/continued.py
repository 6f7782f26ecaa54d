"""The last session of each holder of leases, in SQLite: the next lease continues it. Functions of a connection.

A holder is a key, a principal and a user of this host, behind an edge also a subject (notary/operations/continuing.py).
One row a holder, for as long as a lease of its session lives and CONTINUES_SECONDS more.
"""

from typing import Final

from notary.database import OpenTransaction
from notary.store.contract import LastSession

CONTINUES_SECONDS: Final = 60.0
"""After the end of its last lease, a session can be continued for this long (notary/operations/continuing.py)."""
SWEPT_AT_ONCE: Final = 500
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS last_sessions (
        holder TEXT PRIMARY KEY, session_id TEXT NOT NULL, epoch INTEGER NOT NULL, expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS last_sessions_by_expiry ON last_sessions (expires_at)",
)


def last_session(connection: OpenTransaction, holder: str) -> LastSession | None:
    """The last session stored for this holder, whether or not it can be continued."""
    row = connection.execute(
        "SELECT session_id, epoch, expires_at FROM last_sessions WHERE holder = ?", (holder,)
    ).fetchone()
    return None if row is None else LastSession(*row)


def keep_session(connection: OpenTransaction, holder: str, session: LastSession) -> None:
    """This is its last one from now on."""
    connection.execute(
        "INSERT OR REPLACE INTO last_sessions (holder, session_id, epoch, expires_at) VALUES (?, ?, ?, ?)",
        (holder, *session),
    )


def sweep(connection: OpenTransaction, now: float) -> bool:
    """Forget at most SWEPT_AT_ONCE that can't be continued. True when there may be more."""
    swept = connection.execute(
        "DELETE FROM last_sessions WHERE holder IN"
        " (SELECT holder FROM last_sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
        (now - CONTINUES_SECONDS, SWEPT_AT_ONCE),
    ).rowcount
    return swept == SWEPT_AT_ONCE
