"""Ended approvals with their requests and plans, in SQLite. Functions of a connection inside an open transaction.

They are for those who look into a decision later: nothing is decided by them. They are bounded by age and bytes
(notary/store/keeping.py); what is erased is overwritten in the file.
"""

from ipc.backends.store import ApprovalRecord
from notary.database import OpenTransaction
from notary.store.holds import erasing
from notary.store.keeping import TRIMMED_AT_ONCE, KeptBounds, kept_record, kept_text

TABLES = (
    """
    CREATE TABLE IF NOT EXISTS kept_approvals (
        seq INTEGER PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE, principal TEXT NOT NULL, ended_at REAL NOT NULL,
        bytes INTEGER NOT NULL, record TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX IF NOT EXISTS kept_approvals_by_age ON kept_approvals (ended_at)",
    "CREATE INDEX IF NOT EXISTS kept_approvals_by_principal ON kept_approvals (principal, ended_at)",
    # The sums of their bytes.
    """
    CREATE TABLE IF NOT EXISTS kept_bytes (
        principal TEXT PRIMARY KEY, bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS kept_bytes_by_size ON kept_bytes (bytes)",
)

_PLACE = "SELECT seq, principal, bytes FROM kept_approvals"
_OVER_AGE = f"{_PLACE} WHERE ended_at <= ? ORDER BY ended_at, seq LIMIT 1"
_OVER_PART = (
    f"{_PLACE} WHERE principal = (SELECT principal FROM kept_bytes WHERE bytes > ? LIMIT 1)"  # noqa: S608 - the same
    " ORDER BY ended_at, seq LIMIT 1"
)
_OVER_ALL = f"{_PLACE} WHERE (SELECT sum(bytes) FROM kept_bytes) > ? ORDER BY ended_at, seq LIMIT 1"  # noqa: S608 - the same


def keep(connection: OpenTransaction, record: ApprovalRecord, ended_at: float) -> None:
    """Keep one that has just ended, with its whole body; one of this id that was kept is not, from then on."""
    text = kept_text(record)
    size = len(text.encode())
    with erasing(connection):
        for row in connection.execute(f"{_PLACE} WHERE approval_id = ?", (record.approval_id,)).fetchall():
            _erase(connection, *row)
        connection.execute(
            "INSERT INTO kept_approvals (approval_id, principal, ended_at, bytes, record) VALUES (?, ?, ?, ?, ?)",
            (record.approval_id, record.principal, ended_at, size, text),
        )
    connection.execute(
        "INSERT INTO kept_bytes (principal, bytes) VALUES (?, ?)"
        " ON CONFLICT (principal) DO UPDATE SET bytes = bytes + excluded.bytes",
        (record.principal, size),
    )


def kept(connection: OpenTransaction, approval_id: str) -> ApprovalRecord | None:
    """One of them, as long as it is kept and can be read."""
    row = connection.execute("SELECT record FROM kept_approvals WHERE approval_id = ?", (approval_id,)).fetchone()
    return None if row is None else kept_record(str(row[0]))


def forget(connection: OpenTransaction, approval_id: str) -> None:
    """Erase one of them, if it is kept."""
    with erasing(connection):
        for row in connection.execute(f"{_PLACE} WHERE approval_id = ?", (approval_id,)).fetchall():
            _erase(connection, *row)


def trim(connection: OpenTransaction, bounds: KeptBounds) -> int:
    """Erase what is over the bounds, the oldest first: at most TRIMMED_AT_ONCE. How many it were."""
    with erasing(connection):
        for number in range(TRIMMED_AT_ONCE):
            row = _over(connection, bounds)
            if row is None:
                return number
            _erase(connection, *row)
    return TRIMMED_AT_ONCE


def _over(connection: OpenTransaction, bounds: KeptBounds) -> tuple[int, str, int] | None:
    limits = ((_OVER_AGE, bounds.since), (_OVER_PART, bounds.bytes_of_principal), (_OVER_ALL, bounds.bytes_of_all))
    for statement, limit in limits:
        row = connection.execute(statement, (limit,)).fetchone()
        if row is not None:
            return int(row[0]), str(row[1]), int(row[2])
    return None


def _erase(connection: OpenTransaction, seq: int, principal: str, size: int) -> None:
    connection.execute("DELETE FROM kept_approvals WHERE seq = ?", (seq,))
    connection.execute("UPDATE kept_bytes SET bytes = bytes - ? WHERE principal = ?", (size, principal))
    connection.execute("DELETE FROM kept_bytes WHERE principal = ? AND bytes <= 0", (principal,))
