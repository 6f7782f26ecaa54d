"""Counts of calls by hour and by day: how many there were of each decision, action and principal.

The counts are made from events that have come to their tables, a slice at a time, in a transaction that also notes the
last event that was counted. So no event is counted twice or left out, whichever process ends when, and a call pays
nothing for it. Guarantees a bounded number of rows: by age, and of names in an hour or day. The counts are no evidence.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from ipc.evidence.events import ACTION_CALL, APPROVAL_DENIED, APPROVAL_EXPIRED, APPROVAL_GRANTED
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger import activity_sums
from notary.ledger.activity_sums import HOUR_MS, STEPS

KEPT_HOURS: Final = 400 * 24
NAMES: Final = 500
"""Actions, and principals, that are counted by name in one hour or day; others are counted without their names."""
OTHERS: Final = ""
DECISION, ACTION, PRINCIPAL = "decision", "action", "principal"
# `step` is 1 for the counts of an hour, 24 for those of a day, and `hour` the first hour since the Unix epoch.
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity (
        step INTEGER NOT NULL, hour INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (step, hour, kind, name)
    ) STRICT, WITHOUT ROWID
    """,
    *activity_sums.TABLES,
)
POSTGRES_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity (
        step bigint NOT NULL, hour bigint NOT NULL, kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
        count bigint NOT NULL, PRIMARY KEY (step, hour, kind, name)
    )
    """,
    *activity_sums.POSTGRES_TABLES,
)
_POSITION: Final = "SELECT value FROM meta WHERE key = 'counted'"
_MOVE: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES ('counted', ?)"
_EVENTS: Final = (
    "SELECT seq, time, event_type, decision, action_id, principal, bytes FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
)
_NAMES: Final = "SELECT kind, name FROM activity WHERE step = ? AND hour = ?"
_ADD: Final = (
    "INSERT INTO activity (step, hour, kind, name, count) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (step, hour, kind, name) DO UPDATE SET count = activity.count + excluded.count"
)
_FORGET: Final = "DELETE FROM activity WHERE step = ? AND hour < ?"
_TYPES: Final = frozenset({ACTION_CALL, APPROVAL_GRANTED, APPROVAL_DENIED, APPROVAL_EXPIRED})
_DECISIONS: Final = frozenset({"allow", "deny", "pending_approval", "error"})


class _CountOfAttempts(msgspec.Struct):
    count: int = 1


class _CountedEvent(msgspec.Struct):
    attempts: _CountOfAttempts | None = None
    is_repeated: bool = False


_decode = msgspec.json.Decoder(_CountedEvent).decode
ActivityCounts = Counter[tuple[int, int, str, str]]
"""(step, hour, kind, name) -> calls."""


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


def count_slice(connection: OpenTransaction, limit: int, *, is_file: bool) -> CountedSlice:
    """Count at most so many of the events that are in their table and not counted yet; inside a transaction that
    writes. `is_file`: of a SQLite file. Raises DatabaseGone."""
    before = position(connection)
    rows = connection.execute(_EVENTS, (before, limit)).fetchall()
    if not rows:
        return CountedSlice(0, before)
    last = int(rows[-1][0])
    counts = _bounded(connection, _counts_of(rows))
    if counts:
        connection.executemany(_ADD, [(*key, count) for key, count in counts.items()])
    activity_sums.add_between(connection, before, last, is_file=is_file)
    connection.execute(_MOVE, (str(last),))
    return CountedSlice(len(rows), last)


def forget_values(connection: OpenTransaction, keys: Iterable[str], *, is_file: bool) -> None:
    """Take kept values that are about to be erased out of the sums. `keys`: those of their rows."""
    activity_sums.take_out(connection, keys, position(connection), is_file=is_file)


def forget_before(connection: OpenTransaction, now: float) -> bool:
    """Remove counts and sums that are older than KEPT_HOURS. True if something was overwritten."""
    first = int(now // 3600) - KEPT_HOURS
    for step in STEPS:
        connection.execute(_FORGET, (step, first))
    return activity_sums.forget_before(connection, first)


def _counts_of(rows: Iterable[tuple[Any, ...]]) -> ActivityCounts:
    counts: ActivityCounts = Counter()
    for _, time, event_type, decision, action_id, principal, stored in rows:
        if event_type not in _TYPES or decision not in _DECISIONS:
            continue
        number = _number_of(stored)
        if not number:
            continue
        for step in STEPS:
            hour = int(time) // HOUR_MS // step * step
            counts[step, hour, DECISION, decision] += number
            if action_id:
                counts[step, hour, ACTION, action_id] += number
            if principal:
                counts[step, hour, PRINCIPAL, principal] += number
    return counts


def _number_of(stored: bytes) -> int:
    """The number of calls in an event: several for counted refusals, 0 for a hold that is answered again."""
    try:
        event = _decode(stored)
    except msgspec.MsgspecError as error:
        raise DatabaseGone(f"a stored event makes no sense: {error}") from None
    if event.is_repeated:
        return 0
    return 1 if event.attempts is None else max(1, event.attempts.count)


def _bounded(connection: OpenTransaction, counts: ActivityCounts) -> ActivityCounts:
    """The same counts, with those of new names beyond NAMES put together."""
    known: dict[tuple[int, int], dict[str, set[str]]] = {}
    bounded: ActivityCounts = Counter()
    for (step, hour, kind, name), count in counts.items():
        if (step, hour) not in known:
            known[step, hour] = {DECISION: set(), ACTION: set(), PRINCIPAL: set()}
            for its_kind, its_name in connection.execute(_NAMES, (step, hour)):
                known[step, hour].setdefault(its_kind, set()).add(its_name)
        names = known[step, hour][kind]
        if name not in names and len(names) >= NAMES:
            name = OTHERS
        names.add(name)
        bounded[step, hour, kind, name] += count
    return bounded
