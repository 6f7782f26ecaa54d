"""Approvals in SQLite. Functions of a connection inside a transaction that is open.

A state moves by compare-and-swap and nothing else; the transaction makes of any number of callers one winner. Partial
indexes hold what waits, so that ended approvals cost nothing until they are swept.
"""

import sqlite3
from collections.abc import Callable

from frontend.stores.interface import ApprovalRecord, Hold

_COLUMNS = (
    "approval_id, session_id, action_id, request_hash, state, created_at, expires_at, body, holder, outcome"
)  # fmt: skip

TABLES = (
    """
    CREATE TABLE approvals (
        seq INTEGER PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, action_id TEXT NOT NULL,
        request_hash TEXT NOT NULL, state TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL,
        body TEXT NOT NULL, holder TEXT, outcome TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX approvals_pending ON approvals (session_id, action_id, request_hash) WHERE state = 'pending'",
    "CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE state = 'pending'",
    "CREATE INDEX approvals_claimed ON approvals (holder) WHERE state = 'claimed'",
    "CREATE INDEX approvals_by_state ON approvals (state, created_at, approval_id)",
    "CREATE INDEX approvals_by_age ON approvals (created_at, approval_id)",
    "CREATE INDEX approvals_over ON approvals (expires_at) WHERE state NOT IN ('pending', 'claimed')",
)

SWEPT_AT_ONCE = 100

_SELECT = f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608 - the names above
_NEWEST_FIRST = "ORDER BY created_at DESC, approval_id DESC LIMIT ?"
_PENDING = "WHERE state = 'pending' AND session_id = ? AND action_id = ? AND request_hash = ? AND expires_at > ?"


def pending(
    session_id: str, action_id: str, request_hash: str, now: float
) -> Callable[[sqlite3.Connection], ApprovalRecord | None]:
    """The pending, unexpired approval of this very call."""
    values = (session_id, action_id, request_hash, now)
    return lambda connection: _one(connection.execute(f"{_SELECT} {_PENDING}", values))


def hold(record: ApprovalRecord, limit: int, now: float) -> Callable[[sqlite3.Connection], Hold]:
    """Store a pending approval, unless it is there or the session has `limit` of them."""

    def work(connection: sqlite3.Connection) -> Hold:
        existing = pending(record.session_id, record.action_id, record.request_hash, now)(connection)
        if existing is not None:
            return Hold("existing", existing)
        waiting, free_at = connection.execute(
            "SELECT count(*), min(expires_at) FROM approvals WHERE state = 'pending' AND session_id = ?"
            " AND expires_at > ?",
            (record.session_id, now),
        ).fetchone()
        if waiting >= limit:
            return Hold("too_many", None, free_at)
        connection.execute(
            f"INSERT INTO approvals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - the names above
            (
                record.approval_id, record.session_id, record.action_id, record.request_hash, record.state,
                record.created_at, record.expires_at, record.body, record.holder, record.outcome,
            ),
        )  # fmt: skip
        return Hold("stored", record)

    return work


def get(approval_id: str) -> Callable[[sqlite3.Connection], ApprovalRecord | None]:
    """As stored."""
    return lambda connection: _one(connection.execute(f"{_SELECT} WHERE approval_id = ?", (approval_id,)))


def newest(states: tuple[str, ...] | None, limit: int) -> Callable[[sqlite3.Connection], list[ApprovalRecord]]:
    """Newest first, of these states or of all."""
    if states is None:
        return lambda connection: _all(connection.execute(f"{_SELECT} {_NEWEST_FIRST}", (limit,)))

    def work(connection: sqlite3.Connection) -> list[ApprovalRecord]:
        # One walk from the end of the index for each state, instead of a sort of all that were ever kept.
        found = [
            record
            for state in dict.fromkeys(states)
            for record in _all(connection.execute(f"{_SELECT} WHERE state = ? {_NEWEST_FIRST}", (state, limit)))
        ]
        found.sort(key=lambda record: (record.created_at, record.approval_id), reverse=True)
        return found[:limit]

    return work


def move(
    approval_id: str, from_state: str, to_state: str, outcome: str, holder: str | None, unexpired_at: float | None
) -> Callable[[sqlite3.Connection], ApprovalRecord | None]:
    """Compare and swap. None: it is not in `from_state`, or its time was over at `unexpired_at`."""

    def work(connection: sqlite3.Connection) -> ApprovalRecord | None:
        moved = connection.execute(
            "UPDATE approvals SET state = ?, outcome = ?, holder = ? WHERE approval_id = ? AND state = ?"
            " AND (?6 IS NULL OR expires_at > ?6)",
            (to_state, outcome, holder, approval_id, from_state, unexpired_at),
        ).rowcount
        return get(approval_id)(connection) if moved else None

    return work


def expire(now: float, limit: int) -> Callable[[sqlite3.Connection], list[ApprovalRecord]]:
    """Move pending ones whose time is over to expired, oldest first; those that were moved."""

    def work(connection: sqlite3.Connection) -> list[ApprovalRecord]:
        over = _all(
            connection.execute(
                f"{_SELECT} WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?", (now, limit)
            )
        )
        return [
            moved
            for record in over
            if (moved := move(record.approval_id, "pending", "expired", record.outcome, None, None)(connection))
        ]

    return work


def claimed_by_others(live_holders: tuple[str, ...]) -> Callable[[sqlite3.Connection], list[ApprovalRecord]]:
    """Claimed ones whose holder is not among these."""

    def work(connection: sqlite3.Connection) -> list[ApprovalRecord]:
        claimed = _all(connection.execute(f"{_SELECT} WHERE state = 'claimed' ORDER BY created_at"))
        return [record for record in claimed if record.holder not in live_holders]

    return work


def count_pending(now: float) -> Callable[[sqlite3.Connection], int]:
    """How many wait for an operator."""

    def work(connection: sqlite3.Connection) -> int:
        statement = "SELECT count(*) FROM approvals WHERE state = 'pending' AND expires_at > ?"
        return int(connection.execute(statement, (now,)).fetchone()[0])

    return work


def oldest_pending(now: float) -> Callable[[sqlite3.Connection], float | None]:
    """When the one that has waited longest was created. All live equally long: it is the first to expire."""

    def work(connection: sqlite3.Connection) -> float | None:
        statement = "SELECT created_at FROM approvals WHERE state = 'pending' AND expires_at > ? ORDER BY expires_at"
        row = connection.execute(f"{statement} LIMIT 1", (now,)).fetchone()
        return None if row is None else float(row[0])

    return work


def sweep(over_since: float) -> Callable[[sqlite3.Connection], bool]:
    """Forget at most SWEPT_AT_ONCE ended ones whose time was over then. True when there may be more."""

    def work(connection: sqlite3.Connection) -> bool:
        swept = connection.execute(
            "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals"
            " WHERE state NOT IN ('pending', 'claimed') AND expires_at <= ? ORDER BY expires_at LIMIT ?)",
            (over_since, SWEPT_AT_ONCE),
        ).rowcount
        return swept == SWEPT_AT_ONCE

    return work


def _one(cursor: sqlite3.Cursor) -> ApprovalRecord | None:
    row = cursor.fetchone()
    return None if row is None else ApprovalRecord(*row)


def _all(cursor: sqlite3.Cursor) -> list[ApprovalRecord]:
    return [ApprovalRecord(*row) for row in cursor.fetchall()]
