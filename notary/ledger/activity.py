"""Counts of calls by hour: how many there were of each decision, action and principal.

The counts are made from events that have come to their tables, a slice at a time, in a transaction that also notes the
last event that was counted. So no event is counted twice or left out, whichever process ends when, and a call pays
nothing for it. Guarantees a bounded number of rows: by age, and of names in an hour. The counts are no evidence.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ipc.events import ACTION_CALL, APPROVAL_DENIED, APPROVAL_EXPIRED, APPROVAL_GRANTED
from notary.database import DatabaseGone, OpenTransaction

HOUR_MS: Final = 3_600_000
KEPT_HOURS: Final = 400 * 24
NAMES_AN_HOUR: Final = 500
"""Actions, and principals, that are counted by name in one hour; calls of more are counted without their names."""
OTHERS: Final = ""
DECISION, ACTION, PRINCIPAL = "decision", "action", "principal"
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity (
        hour INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (hour, kind, name)
    ) STRICT, WITHOUT ROWID
    """,
)
POSTGRES_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity (
        hour bigint NOT NULL, kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, count bigint NOT NULL,
        PRIMARY KEY (hour, kind, name)
    )
    """,
)
_POSITION: Final = "SELECT value FROM meta WHERE key = 'counted'"
_MOVE: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES ('counted', ?)"
# The bytes of events that may stand for no call of their own, or for many.
_EVENTS: Final = (
    "SELECT seq, time, event_type, decision, action_id, principal,"
    " CASE WHEN decision <> 'allow' THEN bytes END FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
)
_NAMES: Final = "SELECT kind, name FROM activity WHERE hour = ?"
_ADD: Final = (
    "INSERT INTO activity (hour, kind, name, count) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (hour, kind, name) DO UPDATE SET count = activity.count + excluded.count"
)
_FORGET: Final = "DELETE FROM activity WHERE hour < ?"
_TYPES: Final = frozenset({ACTION_CALL, APPROVAL_GRANTED, APPROVAL_DENIED, APPROVAL_EXPIRED})
_DECISIONS: Final = frozenset({"allow", "deny", "pending_approval", "error"})


class _CountOfAttempts(msgspec.Struct):
    count: int = 1


class _CountedEvent(msgspec.Struct):
    attempts: _CountOfAttempts | None = None
    is_repeated: bool = False


_decode = msgspec.json.Decoder(_CountedEvent).decode
ActivityCounts = Counter[tuple[int, str, str]]
"""(hour, kind, name) -> calls."""


class CountedSlice(NamedTuple):
    """`events` were looked at; `position` is the number of the last one."""

    events: int
    position: int


def position(connection: OpenTransaction) -> int:
    """The number of the last event that is counted. Raises DatabaseGone."""
    row = connection.execute(_POSITION).fetchone()
    try:
        return 0 if row is None else int(row[0])
    except ValueError:
        raise DatabaseGone("the ledger does not say which events are counted") from None


def count_slice(connection: OpenTransaction, limit: int) -> CountedSlice:
    """Count at most so many of the events that are in their table and not counted yet; inside a transaction that
    writes. Raises DatabaseGone."""
    before = position(connection)
    rows = connection.execute(_EVENTS, (before, limit)).fetchall()
    if not rows:
        return CountedSlice(0, before)
    counts = _bounded(connection, _counts_of(rows))
    if counts:
        connection.executemany(_ADD, [(*key, count) for key, count in counts.items()])
    connection.execute(_MOVE, (str(rows[-1][0]),))
    return CountedSlice(len(rows), int(rows[-1][0]))


def forget_before(connection: OpenTransaction, now: float) -> None:
    """Remove counts that are older than KEPT_HOURS."""
    connection.execute(_FORGET, (int(now // 3600) - KEPT_HOURS,))


def _counts_of(rows: Iterable[tuple[Any, ...]]) -> ActivityCounts:
    counts: ActivityCounts = Counter()
    for _, time, event_type, decision, action_id, principal, stored in rows:
        if event_type not in _TYPES or decision not in _DECISIONS:
            continue
        hour, number = int(time) // HOUR_MS, 1 if stored is None else _number_of(stored)
        if not number:
            continue
        counts[hour, DECISION, decision] += number
        if action_id:
            counts[hour, ACTION, action_id] += number
        if principal:
            counts[hour, PRINCIPAL, principal] += number
    return counts


def _number_of(stored: bytes) -> int:
    """How many calls an event stands for: counted refusals are many, a hold that is answered again is none."""
    try:
        event = _decode(stored)
    except msgspec.MsgspecError as error:
        raise DatabaseGone(f"a stored event makes no sense: {error}") from None
    if event.is_repeated:
        return 0
    return 1 if event.attempts is None else max(1, event.attempts.count)


def _bounded(connection: OpenTransaction, counts: ActivityCounts) -> ActivityCounts:
    """The same counts, with those of new names beyond NAMES_AN_HOUR put together."""
    known: dict[int, dict[str, set[str]]] = {}
    bounded: ActivityCounts = Counter()
    for (hour, kind, name), count in counts.items():
        if hour not in known:
            known[hour] = {DECISION: set(), ACTION: set(), PRINCIPAL: set()}
            for its_kind, its_name in connection.execute(_NAMES, (hour,)):
                known[hour].setdefault(its_kind, set()).add(its_name)
        names = known[hour][kind]
        if name not in names and len(names) >= NAMES_AN_HOUR:
            name = OTHERS
        names.add(name)
        bounded[hour, kind, name] += count
    return bounded
