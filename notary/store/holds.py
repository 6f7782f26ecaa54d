"""Approvals in SQLite. Functions of a connection inside a transaction that is open.

A state moves by compare-and-swap and nothing else; the transaction makes of any number of callers one winner. Partial
indexes hold what waits, so that ended approvals cost nothing until they are swept.
"""

import sqlite3

from ipc.approvals import CLAIMED
from ipc.store import ApprovalRecord

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
TOLD_CHARACTERS = 4 * 1024 * 1024
"""Of bodies in one answer: what is more would not fit a frame of the channel."""

_SELECT = f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608 - the names above
_NEWEST_FIRST = "ORDER BY created_at DESC, approval_id DESC LIMIT ?"
_PENDING = "WHERE state = 'pending' AND session_id = ? AND action_id = ? AND request_hash = ? AND expires_at > ?"


def pending(
    connection: sqlite3.Connection, session_id: str, action_id: str, request_hash: str, now: float
) -> ApprovalRecord | None:
    """The pending, unexpired approval of this very call."""
    return _one(connection.execute(f"{_SELECT} {_PENDING}", (session_id, action_id, request_hash, now)))


def waiting(connection: sqlite3.Connection, session_id: str, now: float) -> tuple[int, float | None]:
    """How many wait of one session, and when the first of them expires."""
    count, free_at = connection.execute(
        "SELECT count(*), min(expires_at) FROM approvals WHERE state = 'pending' AND session_id = ? AND expires_at > ?",
        (session_id, now),
    ).fetchone()
    return count, free_at


def store(connection: sqlite3.Connection, record: ApprovalRecord) -> None:
    """Store a new approval."""
    connection.execute(
        f"INSERT INTO approvals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - the names above
        (
            record.approval_id, record.session_id, record.action_id, record.request_hash, record.state,
            record.created_at, record.expires_at, record.body, record.holder, record.outcome,
        ),
    )  # fmt: skip


def get(connection: sqlite3.Connection, approval_id: str) -> ApprovalRecord | None:
    """As stored."""
    return _one(connection.execute(f"{_SELECT} WHERE approval_id = ?", (approval_id,)))


def is_claimed_by(approval: ApprovalRecord, front_id: str) -> bool:
    """True while this front has it."""
    return approval.state == CLAIMED and approval.holder == front_id


def newest(connection: sqlite3.Connection, states: tuple[str, ...] | None, limit: int) -> list[ApprovalRecord]:
    """Newest first, of these states or of all."""
    if states is None:
        return _all(connection.execute(f"{_SELECT} {_NEWEST_FIRST}", (limit,)))
    # One walk from the end of the index for each state, instead of a sort of all that were ever kept.
    records = [
        record
        for state in dict.fromkeys(states)
        for record in _all(connection.execute(f"{_SELECT} WHERE state = ? {_NEWEST_FIRST}", (state, limit)))
    ]
    records.sort(key=lambda record: (record.created_at, record.approval_id), reverse=True)
    return records[:limit]


def move(
    connection: sqlite3.Connection, approval_id: str, from_state: str, to_state: str, *, outcome: str,
    holder: str | None = None,
) -> ApprovalRecord | None:  # fmt: skip
    """Compare and swap. None: it is not in `from_state`."""
    moved = connection.execute(
        "UPDATE approvals SET state = ?, outcome = ?, holder = ? WHERE approval_id = ? AND state = ?",
        (to_state, outcome, holder, approval_id, from_state),
    ).rowcount
    return get(connection, approval_id) if moved else None


def due(connection: sqlite3.Connection, now: float, limit: int) -> list[ApprovalRecord]:
    """Pending ones whose time is over, oldest first: one at least, and no more than TOLD_CHARACTERS."""
    over = f"{_SELECT} WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?"
    return _that_fit(connection.execute(over, (now, limit)))


def claimed_by_others(connection: sqlite3.Connection, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
    """Claimed ones whose holder is not among these, oldest first: one at least, and no more than TOLD_CHARACTERS."""
    marks = ", ".join("?" * len(live_holders))
    orphaned = (
        f"{_SELECT} WHERE state = 'claimed' AND (holder IS NULL OR holder NOT IN ({marks})) ORDER BY created_at, seq"
    )
    return _that_fit(connection.execute(orphaned, live_holders))


def claimed_by(connection: sqlite3.Connection, holder: str, but: tuple[str, ...]) -> list[ApprovalRecord]:
    """What this holder has claimed, without the ids in `but`, oldest first: one at least, and no more than
    TOLD_CHARACTERS."""
    marks = ", ".join("?" * len(but))
    claimed = (
        f"{_SELECT} WHERE state = 'claimed' AND holder = ? AND approval_id NOT IN ({marks}) ORDER BY created_at, seq"
    )
    return _that_fit(connection.execute(claimed, (holder, *but)))


def count_pending(connection: sqlite3.Connection, now: float) -> tuple[int, float | None]:
    """How many wait for an operator, and when the one that has waited longest was created.

    All live equally long: the oldest is the first to expire.
    """
    live = "FROM approvals WHERE state = 'pending' AND expires_at > ?"
    (count,) = connection.execute(f"SELECT count(*) {live}", (now,)).fetchone()
    row = connection.execute(f"SELECT created_at {live} ORDER BY expires_at LIMIT 1", (now,)).fetchone()
    return int(count), None if row is None else float(row[0])


def sweep(connection: sqlite3.Connection, over_since: float) -> bool:
    """Forget at most SWEPT_AT_ONCE ended ones whose time was over then. True when there may be more."""
    swept = connection.execute(
        "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals"
        " WHERE state NOT IN ('pending', 'claimed') AND expires_at <= ? ORDER BY expires_at LIMIT ?)",
        (over_since, SWEPT_AT_ONCE),
    ).rowcount
    return swept == SWEPT_AT_ONCE


def _one(cursor: sqlite3.Cursor) -> ApprovalRecord | None:
    row = cursor.fetchone()
    return None if row is None else ApprovalRecord(*row)


def _that_fit(cursor: sqlite3.Cursor) -> list[ApprovalRecord]:
    records: list[ApprovalRecord] = []
    left = TOLD_CHARACTERS
    for row in cursor:
        record = ApprovalRecord(*row)
        left -= len(record.body)
        if records and left < 0:
            break
        records.append(record)
    return records


def _all(cursor: sqlite3.Cursor) -> list[ApprovalRecord]:
    return [ApprovalRecord(*row) for row in cursor.fetchall()]
