"""Refusals of one principal with one code: an event each at first, then two a minute that tell how many there were.

The first `REFUSALS_AN_HOUR` of an hour have an event each. The next one opens a window and has its event, too; those
after it are counted, and the last of them is the event that ends the window, with their number. Guarantees that each
refusal is in the ledger or in a row of `meta`, in the transaction that uses its proof: a notary that follows one which
was killed writes the event of a window that was open. Functions and values; notary/operations/refusing.py uses them.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from ipc.evidence.events import ACTION_CALL, ACTION_PREVIEWED, LEASE_ISSUED, AuditEvent
from notary.database import DatabaseGone, OpenTransaction

REFUSALS_AN_HOUR: Final = 600
HOUR_SECONDS: Final = 3600.0
WINDOW_SECONDS: Final = 60.0
MAX_KEYS: Final = 2048
"""Principals and codes that are counted apart; more begin anew."""

Key = tuple[str, str]
_COUNTED: Final = frozenset({ACTION_CALL, ACTION_PREVIEWED, LEASE_ISSUED})


class RefusalCount(msgspec.Struct, frozen=True):
    """One principal and code. Times are Unix seconds."""

    since: float
    """When the hour began."""
    number: int = 0
    """Refusals in that hour."""
    until: float = 0.0
    """When the open window is over; 0 without one."""
    count: int = 0
    """Refusals of the window without an event."""
    last: AuditEvent | None = None
    """The last of them."""


def key_of(event: AuditEvent) -> Key | None:
    """The count of a refused call, preview or lease. None for other events, and for those that already stand for
    many."""
    if event.event_type not in _COUNTED or event.principal is None or event.attempts is not None:
        return None
    if event.event_type == ACTION_PREVIEWED and event.error_code is None:
        return None
    code = event.error_code or ""
    return event.principal, code if event.event_type == ACTION_CALL else f"{event.event_type} {code}"


def counted(known: RefusalCount | None, event: AuditEvent, now: float) -> RefusalCount:
    """Count one more refusal. It has an event of its own, unless the result's `last` is that event."""
    if known is None or not known.since <= now < known.since + HOUR_SECONDS:
        known = replace(known, since=now, number=0) if known is not None else RefusalCount(now)
    number = known.number + 1
    if known.count or known.until - WINDOW_SECONDS <= now < known.until:
        return replace(known, number=number, count=known.count + 1, last=event)
    return replace(known, number=number, until=now + WINDOW_SECONDS if number > REFUSALS_AN_HOUR else 0.0)


def is_due(known: RefusalCount, now: float) -> bool:
    """The window is over, or the clock was set back, and something was counted."""
    return known.count > 0 and not known.until - WINDOW_SECONDS <= now < known.until


def told(known: RefusalCount) -> RefusalCount:
    """The count once the event of its window is written."""
    return replace(known, until=0.0, count=0, last=None)


def pruned(counts: dict[Key, RefusalCount]) -> dict[Key, RefusalCount]:
    """Without the oldest that have nothing to tell, where there are too many."""
    idle = [key for key, known in counts.items() if not known.count]
    surplus = frozenset(idle[: max(0, len(counts) - MAX_KEYS)])
    return {key: known for key, known in counts.items() if key not in surplus} if surplus else counts


# ------------------------------------------------------------------ the rows

_FIRST = "refused {gateway} "
_WRITE = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
_DELETE = "DELETE FROM meta WHERE key = ?"
_READ = "SELECT key, value FROM meta WHERE key >= ? AND key < ?"
_decode = msgspec.json.Decoder(RefusalCount).decode
_encode = msgspec.json.Encoder().encode


def keep(connection: OpenTransaction, gateway_id: str, key: Key, known: RefusalCount) -> None:
    """Write the count, or delete it once an event has it."""
    row = _row_of(gateway_id, key)
    if known.count:
        connection.execute(_WRITE, (row, _encode(known).decode()))
    else:
        connection.execute(_DELETE, (row,))


def read(connection: OpenTransaction, gateway_id: str) -> dict[Key, RefusalCount]:
    """The counts of this gateway that no event has yet. Raises DatabaseGone."""
    return dict(_rows(connection, _FIRST.format(gateway=gateway_id)))


def _rows(connection: OpenTransaction, first: str) -> Iterator[tuple[Key, RefusalCount]]:
    for row, value in connection.execute(_READ, (first, first[:-1] + "!")):
        try:
            principal, code = msgspec.json.decode(row[len(first) :], type=Key)
            yield (principal, code), _decode(value)
        except msgspec.MsgspecError as error:
            raise DatabaseGone(f"the stored count of refusals can't be read: {error}") from None


def _row_of(gateway_id: str, key: Key) -> str:
    return _FIRST.format(gateway=gateway_id) + _encode(key).decode()
