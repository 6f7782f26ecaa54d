"""Exact sums of kept numbers by hour and by day: of the calls of an action that were executed, by JSON pointer.

A value that is erased leaves the sums before its row does: the sum of a single call would tell it. Functions of a
connection inside an open transaction.
"""

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Any, Final

from ipc.events import ACTION_CALL, APPROVAL_GRANTED
from notary.database import OpenTransaction

HOUR_MS: Final = 3_600_000
STEPS: Final = (1, 24)
"""Hours of a step: counts and sums are kept by hour and by day."""
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity_sums (
        step INTEGER NOT NULL, hour INTEGER NOT NULL, action_id TEXT NOT NULL, pointer TEXT NOT NULL, sum TEXT NOT NULL,
        PRIMARY KEY (step, hour, action_id, pointer)
    ) STRICT, WITHOUT ROWID
    """,
)
POSTGRES_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity_sums (
        step bigint NOT NULL, hour bigint NOT NULL, action_id text COLLATE "C" NOT NULL,
        pointer text COLLATE "C" NOT NULL, sum text NOT NULL, PRIMARY KEY (step, hour, action_id, pointer)
    )
    """,
)
_VALUES: Final = (
    "SELECT events.time, events.event_type, events.decision, events.action_id, pointer, value"
    " FROM kept_values CROSS JOIN events ON events.seq = kept_values.seq"
    " WHERE kept_values.value IS NOT NULL AND kept_values.kind = 'kept'"
)
_BETWEEN: Final = f"{_VALUES} AND kept_values.seq > ? AND kept_values.seq <= ?"
_OF: Final = f"{_VALUES} AND kept_values.key = ? AND kept_values.seq <= ?"
_GET: Final = "SELECT sum FROM activity_sums WHERE step = ? AND hour = ? AND action_id = ? AND pointer = ?"
_SET: Final = (
    "INSERT INTO activity_sums (step, hour, action_id, pointer, sum) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (step, hour, action_id, pointer) DO UPDATE SET sum = excluded.sum"
)
_REMOVE: Final = "DELETE FROM activity_sums WHERE step = ? AND hour = ? AND action_id = ? AND pointer = ?"
_FORGET: Final = "DELETE FROM activity_sums WHERE step = ? AND hour < ?"
_EXECUTED: Final = frozenset({ACTION_CALL, APPROVAL_GRANTED})
EXACT: Final = Context(prec=1000)
"""More digits than the sum of any two JSON numbers has: these are doubles (RFC 8785)."""


def add_between(connection: OpenTransaction, after: int, last: int) -> None:
    """Add the values of events after this number, up to that one."""
    _change(connection, connection.execute(_BETWEEN, (after, last)).fetchall(), 1)


def take_out(connection: OpenTransaction, keys: Iterable[str], last: int) -> None:
    """Subtract the values of the rows with these keys, as far as those of events up to this number were added."""
    for key in keys:
        _change(connection, connection.execute(_OF, (key, last)).fetchall(), -1)


def forget_before(connection: OpenTransaction, hour: int) -> None:
    """Remove the sums of earlier hours and days."""
    for step in STEPS:
        connection.execute(_FORGET, (step, hour))


def _change(connection: OpenTransaction, rows: Iterable[Sequence[Any]], sign: int) -> None:
    changes: dict[tuple[int, int, str, str], Decimal] = {}
    for time, event_type, decision, action_id, pointer, value in rows:
        text = bytes(value).decode()
        if event_type not in _EXECUTED or decision != "allow" or not action_id or text[:1] not in "-0123456789":
            continue
        for step in STEPS:
            key = (step, int(time) // HOUR_MS // step * step, action_id, pointer)
            changes[key] = EXACT.add(changes.get(key, Decimal(0)), EXACT.multiply(Decimal(text), Decimal(sign)))
    for key, change in changes.items():
        row = connection.execute(_GET, key).fetchone()
        total = change if row is None else EXACT.add(Decimal(row[0]), change)
        if total or sign > 0:
            connection.execute(_SET, (*key, format(total, "f")))
        else:
            connection.execute(_REMOVE, key)
