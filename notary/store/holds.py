"""Approvals in SQLite. Functions of a connection inside a transaction that is open.

A state moves by compare-and-swap and nothing else; the transaction makes of any number of callers one winner. Partial
indexes hold what waits, so that ended approvals cost nothing until they are swept. With its end an approval loses the
request here: what stood there is overwritten in the file. notary/store/kept.py has it from then on.
"""

import msgspec

from ipc.approvals import ENDED, listed, read_remains, remains_of
from ipc.backends.store import NO_EPOCH, RIGHT_REVOKED, ApprovalRecord
from notary.database import OpenTransaction, Rows
from notary.store.contract import TOLD_CHARACTERS, Moment, Waiting
from notary.store.own_pages import ROOM, erasing

_BEFORE = "approval_id, session_id, action_id, request_hash, state, created_at, expires_at, body, holder, outcome"
"""Columns of an earlier version."""
_COLUMNS = f"{_BEFORE}, principal, epoch"

TABLES = (
    # Columns that are filtered by come before the body: SQLite finds them without reading it. `bytes` are those of the
    # body in UTF-8, `summary` is what a list shows of it.
    f"""
    CREATE TABLE approvals (
        seq INTEGER PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, action_id TEXT NOT NULL,
        request_hash TEXT NOT NULL, state TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL,
        principal TEXT NOT NULL, epoch INTEGER NOT NULL, bytes INTEGER NOT NULL, holder TEXT, outcome TEXT NOT NULL,
        {ROOM}, summary TEXT NOT NULL, body TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX approvals_pending ON approvals (session_id, action_id, request_hash) WHERE state = 'pending'",
    "CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE state = 'pending'",
    "CREATE INDEX approvals_waiting ON approvals (principal, epoch, expires_at, bytes) WHERE state = 'pending'",
    "CREATE INDEX approvals_claimed ON approvals (holder) WHERE state = 'claimed'",
    "CREATE INDEX approvals_by_state ON approvals (state, created_at, approval_id)",
    "CREATE INDEX approvals_by_age ON approvals (created_at, approval_id, action_id)",
    "CREATE INDEX approvals_by_principal ON approvals (principal, created_at, approval_id)",
    "CREATE INDEX approvals_by_both ON approvals (state, principal, created_at, approval_id)",
    "CREATE INDEX approvals_over ON approvals (expires_at) WHERE state NOT IN ('pending', 'claimed')",
)

SWEPT_AT_ONCE = 100

_SELECT = f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608 - the names above
_PENDING = "WHERE state = 'pending' AND session_id = ? AND action_id = ? AND request_hash = ?"
_LIVE = "state = 'pending' AND epoch = ? AND expires_at > ?"
_WAITING = f"SELECT count(*), coalesce(sum(bytes), 0), min(expires_at) FROM approvals WHERE {_LIVE}"  # noqa: S608


def pending(
    connection: OpenTransaction, session_id: str, action_id: str, request_hash: str, moment: Moment
) -> ApprovalRecord | None:
    """The pending approval of this very call, if it still waits."""
    of_call = (session_id, action_id, request_hash, moment.epoch, moment.now)
    return _one(connection.execute(f"{_SELECT} {_PENDING} AND epoch = ? AND expires_at > ?", of_call))


def waiting_of_session(connection: OpenTransaction, session_id: str, moment: Moment) -> Waiting:
    """Pending approvals of one session."""
    row = connection.execute(f"{_WAITING} AND session_id = ?", (moment.epoch, moment.now, session_id)).fetchone()
    return Waiting(*row)


def waiting_of(connection: OpenTransaction, principal: str, moment: Moment) -> Waiting:
    """Pending approvals of one principal."""
    row = connection.execute(f"{_WAITING} AND principal = ?", (moment.epoch, moment.now, principal)).fetchone()
    return Waiting(*row)


def waiting(connection: OpenTransaction, moment: Moment) -> Waiting:
    """All pending approvals."""
    return Waiting(*connection.execute(_WAITING, (moment.epoch, moment.now)).fetchone())


def store(connection: OpenTransaction, record: ApprovalRecord) -> None:
    """Store a new approval."""
    with erasing(connection):
        _insert(connection, record)


def bring(connection: OpenTransaction, table: str) -> None:
    """Take over the approvals of an earlier version, which lie in this table: what has ended without its request."""
    rows = connection.execute(f"SELECT seq, {_BEFORE} FROM {table} ORDER BY seq")  # noqa: S608 - a name of ours
    for seq, *values in rows:
        record = ApprovalRecord(*values)
        plan = read_remains(record.body).plan
        body = remains_of(record.body) if record.state in ENDED else record.body
        record = msgspec.structs.replace(record, body=body, principal=plan.principal or "", epoch=plan.epoch)
        _insert(connection, record, seq)


def _insert(connection: OpenTransaction, record: ApprovalRecord, seq: int | None = None) -> None:
    connection.execute(
        f"INSERT INTO approvals (seq, {_COLUMNS}, bytes, summary)"  # noqa: S608 - the names above
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            seq, record.approval_id, record.session_id, record.action_id, record.request_hash, record.state,
            record.created_at, record.expires_at, record.body, record.holder, record.outcome, record.principal,
            record.epoch, len(record.body.encode()), listed(record.body),
        ),
    )  # fmt: skip


def get(connection: OpenTransaction, approval_id: str) -> ApprovalRecord | None:
    """As stored."""
    return _one(connection.execute(f"{_SELECT} WHERE approval_id = ?", (approval_id,)))


def state(connection: OpenTransaction, approval_id: str) -> ApprovalRecord | None:
    """As stored, with an empty body: nothing is read of that."""
    columns = _COLUMNS.replace("body", "''")
    return _one(connection.execute(f"SELECT {columns} FROM approvals WHERE approval_id = ?", (approval_id,)))  # noqa: S608


def move(
    connection: OpenTransaction, approval_id: str, from_state: str, to_state: str, *, outcome: str,
    holder: str | None = None,
) -> ApprovalRecord | None:  # fmt: skip
    """Compare and swap; with its end an approval loses the request. None: it is not in `from_state`."""
    approval = get(connection, approval_id)
    if approval is None or approval.state != from_state:
        return None
    body = remains_of(approval.body) if to_state in ENDED else approval.body
    with erasing(connection):
        connection.execute(
            "UPDATE approvals SET state = ?, outcome = ?, holder = ?, bytes = ? WHERE approval_id = ?",
            (to_state, outcome, holder, len(body.encode()), approval_id),
        )
        if body is not approval.body:
            shown = (body, listed(body), approval_id)
            connection.execute("UPDATE approvals SET room = x'', body = ?, summary = ? WHERE approval_id = ?", shown)
    return get(connection, approval_id)


def void(connection: OpenTransaction, session_id: str) -> None:
    """End the pending approvals of a session, as a new epoch does."""
    with erasing(connection):
        connection.execute(
            "UPDATE approvals SET epoch = ? WHERE state = 'pending' AND session_id = ?", (NO_EPOCH, session_id)
        )


def void_one(connection: OpenTransaction, approval_id: str) -> None:
    """The right to a pending call was revoked: it waits no more."""
    with erasing(connection):
        connection.execute(
            "UPDATE approvals SET epoch = ? WHERE state = 'pending' AND approval_id = ?", (RIGHT_REVOKED, approval_id)
        )


def due(connection: OpenTransaction, moment: Moment, limit: int) -> list[ApprovalRecord]:
    """Pending ones that wait no more, oldest first; bounded as `claimed_by` is. First those whose time is
    over, then those of another epoch."""
    over = f"{_SELECT} WHERE state = 'pending' AND expires_at <= ? ORDER BY expires_at LIMIT ?"
    records = _that_fit(connection.execute(over, (moment.now, limit)))
    if records:
        return records
    revoked = f"{_SELECT} WHERE state = 'pending' AND epoch <> ? ORDER BY expires_at LIMIT ?"
    return _that_fit(connection.execute(revoked, (moment.epoch, limit)))


def claimed_by_others(connection: OpenTransaction, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
    """Claimed ones whose holder is not among these, oldest first; bounded as `claimed_by` is."""
    marks = ", ".join("?" * len(live_holders))
    orphaned = (
        f"{_SELECT} WHERE state = 'claimed' AND (holder IS NULL OR holder NOT IN ({marks})) ORDER BY created_at, seq"
    )
    return _that_fit(connection.execute(orphaned, live_holders))


def claimed_by(connection: OpenTransaction, holder: str, but: tuple[str, ...]) -> list[ApprovalRecord]:
    """Approvals that this holder has claimed, without the ids in `but`, oldest first: bodies of no more than
    TOLD_CHARACTERS together, but one at least."""
    marks = ", ".join("?" * len(but))
    claimed = (
        f"{_SELECT} WHERE state = 'claimed' AND holder = ? AND approval_id NOT IN ({marks}) ORDER BY created_at, seq"
    )
    return _that_fit(connection.execute(claimed, (holder, *but)))


def count_pending(connection: OpenTransaction, moment: Moment) -> tuple[int, float | None]:
    """How many wait for an operator, and when the one that has waited longest was created.

    All live equally long: the oldest is the first to expire.
    """
    live, values = f"FROM approvals WHERE {_LIVE}", (moment.epoch, moment.now)
    (count,) = connection.execute(f"SELECT count(*) {live}", values).fetchone()
    row = connection.execute(f"SELECT created_at {live} ORDER BY expires_at LIMIT 1", values).fetchone()
    return int(count), None if row is None else float(row[0])


def sweep(connection: OpenTransaction, over_since: float) -> bool:
    """Forget at most SWEPT_AT_ONCE ended ones whose time was over then. True when there may be more."""
    with erasing(connection):
        swept = connection.execute(
            "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals"
            " WHERE state NOT IN ('pending', 'claimed') AND expires_at <= ? ORDER BY expires_at LIMIT ?)",
            (over_since, SWEPT_AT_ONCE),
        ).rowcount
    return swept == SWEPT_AT_ONCE


def _one(cursor: Rows) -> ApprovalRecord | None:
    row = cursor.fetchone()
    return None if row is None else ApprovalRecord(*row)


def _that_fit(cursor: Rows) -> list[ApprovalRecord]:
    records: list[ApprovalRecord] = []
    left = TOLD_CHARACTERS
    for row in cursor:
        record = ApprovalRecord(*row)
        left -= len(record.body)
        if records and left < 0:
            break
        records.append(record)
    return records
