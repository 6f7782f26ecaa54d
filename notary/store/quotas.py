"""The use of quotas by principals (ipc/configuration/quotas.py), in SQLite. Functions of a connection inside a
transaction.

Calls are counted by the minute, and count until that minute has been over for an hour: in no sixty minutes are there
more than the quota, and a principal has few rows, one a minute. Minutes to come count, too, so that a clock that was
set back gives no principal more.
"""

from math import ceil
from typing import Final

from notary.database import OpenTransaction

TABLES: Final = (
    """
    CREATE TABLE quota_calls (
        principal TEXT NOT NULL, minute INTEGER NOT NULL, calls INTEGER NOT NULL, PRIMARY KEY (principal, minute)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX quota_calls_by_minute ON quota_calls (minute)",
    """
    CREATE TABLE quota_holds (approval_id TEXT PRIMARY KEY, principal TEXT NOT NULL, minute INTEGER NOT NULL)
    STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX quota_holds_by_minute ON quota_holds (minute)",
    """
    CREATE TABLE quota_sessions (
        principal TEXT NOT NULL, expires_at REAL NOT NULL, session_id TEXT NOT NULL, epoch INTEGER NOT NULL,
        PRIMARY KEY (principal, expires_at, session_id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX quota_sessions_by_expiry ON quota_sessions (expires_at)",
)

WINDOW_MINUTES = 61
"""The minute that has begun, and the sixty before it."""
KEPT_SECONDS = 60.0
"""Expired rows are kept this long, for a clock that a time service has set back a little."""
SWEPT_AT_ONCE = 500
_KEY_OF = {
    "quota_calls": "principal, minute", "quota_holds": "approval_id",
    "quota_sessions": "principal, expires_at, session_id",
}  # fmt: skip


def minute_of(now: float) -> int:
    """The minute that calls of now are counted in."""
    return int(now // 60)


def calls_of(connection: OpenTransaction, principal: str, now: float) -> tuple[int, int | None]:
    """Calls that count now, and, where there are any, the seconds until the first of them counts no more."""
    calls, first = connection.execute(
        "SELECT coalesce(sum(calls), 0), min(minute) FROM quota_calls WHERE principal = ? AND minute > ? AND calls > 0",
        (principal, minute_of(now) - WINDOW_MINUTES),
    ).fetchone()
    return calls, None if first is None else ceil((first + WINDOW_MINUTES) * 60 - now)


def count_call(connection: OpenTransaction, principal: str, minute: int) -> None:
    """One more call of this minute."""
    connection.execute(
        "INSERT INTO quota_calls (principal, minute, calls) VALUES (?, ?, 1)"
        " ON CONFLICT (principal, minute) DO UPDATE SET calls = calls + 1",
        (principal, minute),
    )


def give_back(connection: OpenTransaction, principal: str, minute: int) -> None:
    """Uncount a call that was counted in this minute and not executed; nothing to do if it counts no more."""
    connection.execute(
        "UPDATE quota_calls SET calls = calls - 1 WHERE principal = ? AND minute = ? AND calls > 0", (principal, minute)
    )


def note_hold(connection: OpenTransaction, approval_id: str, principal: str, minute: int) -> None:
    """The call that was counted in this minute waits for a person."""
    connection.execute(
        "INSERT INTO quota_holds (approval_id, principal, minute) VALUES (?, ?, ?)", (approval_id, principal, minute)
    )


def give_back_hold(connection: OpenTransaction, approval_id: str) -> None:
    """A held call will never be executed. Once; of one that was not counted nothing happens."""
    row = connection.execute(
        "DELETE FROM quota_holds WHERE approval_id = ? RETURNING principal, minute", (approval_id,)
    ).fetchone()
    if row is not None:
        give_back(connection, *row)


def is_counted_hold(connection: OpenTransaction, approval_id: str) -> bool:
    """True for a hold whose call counts, and was not given back."""
    row = connection.execute("SELECT 1 FROM quota_holds WHERE approval_id = ?", (approval_id,)).fetchone()
    return row is not None


def sessions_of(connection: OpenTransaction, principal: str, epoch: int, now: float) -> tuple[int, int | None]:
    """Leases that live now, and, where there are any, the seconds until the first of them ends."""
    sessions, first = connection.execute(
        "SELECT count(*), min(expires_at) FROM quota_sessions WHERE principal = ? AND expires_at > ? AND epoch = ?",
        (principal, now, epoch),
    ).fetchone()
    return sessions, None if first is None else ceil(first - now)


def add_session(connection: OpenTransaction, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
    """One more lease."""
    connection.execute(
        "INSERT INTO quota_sessions (principal, expires_at, session_id, epoch) VALUES (?, ?, ?, ?)",
        (principal, expires_at, session_id, epoch),
    )


def drop_session(connection: OpenTransaction, principal: str, session_id: str) -> None:
    """Uncount a lease that was revoked. A lease that was not counted is no error."""
    connection.execute("DELETE FROM quota_sessions WHERE principal = ? AND session_id = ?", (principal, session_id))


def bring_back(connection: OpenTransaction, now: float) -> None:
    """Count calls of minutes to come in the present one: the clock had been ahead."""
    minute = (minute_of(now),)
    connection.execute(
        "INSERT INTO quota_calls (principal, minute, calls)"
        " SELECT principal, ?, sum(calls) FROM quota_calls WHERE minute > ? GROUP BY principal"
        " ON CONFLICT (principal, minute) DO UPDATE SET calls = quota_calls.calls + excluded.calls",
        minute * 2,
    )
    connection.execute("DELETE FROM quota_calls WHERE minute > ?", minute)
    connection.execute("UPDATE quota_holds SET minute = ? WHERE minute > ?", minute * 2)


def sweep(connection: OpenTransaction, now: float) -> bool:
    """Forget at most SWEPT_AT_ONCE rows of each kind that count no more. True when there may be more."""
    before = now - KEPT_SECONDS
    over = minute_of(before) - WINDOW_MINUTES
    return any([
        _swept(connection, "quota_calls", "minute", over), _swept(connection, "quota_holds", "minute", over),
        _swept(connection, "quota_sessions", "expires_at", before),
    ])  # fmt: skip


def _swept(connection: OpenTransaction, table: str, column: str, until: float) -> bool:
    key = _KEY_OF[table]
    swept = connection.execute(
        f"DELETE FROM {table} WHERE ({key}) IN"  # noqa: S608 - the names above
        f" (SELECT {key} FROM {table} WHERE {column} <= ? ORDER BY {column} LIMIT ?)",
        (until, SWEPT_AT_ONCE),
    ).rowcount
    return swept == SWEPT_AT_ONCE
