"""EraseKept: values of requests are taken out of the rows beside the ledger, and out of everything that still has them.

The event lists the commitments whose rows it empties, and nothing else changes in evidence. In a SQLite file the keys
of the values are overwritten in the same transaction (notary/ledger/encrypted_values.py): whenever the notary ends, all
of it was done or nothing. Erased are also the stored requests of these calls, pages of the journal, and the write-ahead
log once the unit is committed.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Final, NamedTuple

import msgspec

from ipc.approvals import CLAIMED, PENDING
from ipc.evidence.events import EVIDENCE_ERASED, AuditEvent
from ipc.evidence.kept_values import commitment
from ipc.operations.erasing import ErasedKept, EraseKept
from notary.ledger.activity import forget_values
from notary.ledger.encrypted_values import ValueOpener, forget_keys, number_of
from notary.operations.allowed import check_event
from notary.operations.open_kept import OpenKept, OpenKeptCall, open_kept_calls
from notary.store.own_pages import erasing
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

AT_ONCE: Final = 32
"""Events whose values one operation erases: its own event lists so many times 32 commitments at most."""
_EVENT: Final = "SELECT trace_id, principal, bytes FROM events WHERE event_id = ?"
_OF_TRACE: Final = f"""
SELECT seq, bytes FROM events WHERE trace_id = ? AND coalesce(principal, '') = ?
AND (time, seq) > (coalesce((SELECT time FROM events AS last WHERE last.seq = ?), -1), ?) ORDER BY time, seq
LIMIT {AT_ONCE}
"""  # noqa: S608 - a number of this file
"""A trace that its caller chose may have any number of events. Found by their trace: a principal has more."""
_SOME: Final = f"""
SELECT DISTINCT seq, events.bytes FROM kept_values JOIN events USING (seq)
WHERE value IS NOT NULL AND seq > ? AND time < ? AND events.principal = ? ORDER BY seq LIMIT {AT_ONCE}
"""  # noqa: S608 - a number of this file
_ROWS: Final = "SELECT pointer, value, salt FROM kept_values WHERE key = ? AND value IS NOT NULL ORDER BY pointer"
_EMPTY: Final = "UPDATE kept_values SET value = NULL, salt = NULL, erased_by = ? WHERE key = ? AND pointer = ?"
_FOREVER: Final = 2**62


class ErasedCall(msgspec.Struct):
    """A call whose values are erased, by one of its events, or by its intent where it has no event of its end."""

    event_id: str = ""
    intent_id: str | None = None
    approval_id: str | None = None
    request_hash: str | None = None

    @property
    def key(self) -> str:
        """The key of its rows."""
        return self.intent_id or self.event_id


class _LostValue(NamedTuple):
    """A row that an erasing empties."""

    key: str
    pointer: str
    commitment: str
    number: int | None
    """The number of its key; None where it is not encrypted."""


class ErasedSlice(NamedTuple):
    """Some of the calls; `running` ones may still end, and are not among them."""

    calls: list[ErasedCall]
    next: int | None
    running: int = 0


call_of = msgspec.json.Decoder(ErasedCall).decode
"""The call of an event, given its stored bytes."""


@performs(EraseKept, writes=True, settles=True)
def erase_kept(unit: Transaction, asked: EraseKept) -> ErasedKept | None:
    """See EraseKept. Raises NotAllowed."""
    check_event(asked.event, EVIDENCE_ERASED, frozenset({"allow"}))
    if asked.event.change is not None or (asked.event_id is None) == (asked.principal is None):
        raise NotAllowed("an erasure of more than one kind, or one that says its own outcome")
    unit.settle()
    if asked.event_id is not None:
        found = _of_one(unit, asked.event_id, asked.after)
    else:
        found = _some_of(unit, asked.principal, asked.before, asked.after)
    return None if found is None else erased(unit, asked.event, _told(asked), found)


def erased(unit: Transaction, event: AuditEvent, told: Mapping[str, Any], found: ErasedSlice) -> ErasedKept:
    """Erase the values of these calls, but of those that wait, and write the event. `told`: more of its `change`."""
    ended = [one for one in found.calls if not _waits(unit, one)]
    rows = _lost(unit, [one.key for one in ended])
    if rows:
        unit.append(event, change={"count": len(rows), "commitments": [row.commitment for row in rows], **told})
        _empty(unit, rows, unit.last_seq)
    _forget_outputs(unit, {one.approval_id or one.intent_id for one in ended})
    _forget_requests(unit, {one.approval_id for one in ended if one.approval_id is not None})
    return ErasedKept(len(rows), len(found.calls) - len(ended) + found.running, found.next)


def _forget_outputs(unit: Transaction, call_ids: Iterable[str | None]) -> None:
    """Erase outputs that are kept for calls made again under their keys."""
    unit.part = "store"
    for call_id in call_ids:
        if call_id is not None:
            unit.store.keyed.erase_output(call_id)
            unit.erase()
    unit.part = "ledger"


def _told(asked: EraseKept) -> dict[str, Any]:
    told = {"event_id": asked.event_id, "principal": asked.principal}
    return {name: value for name, value in told.items() if value is not None}


def _of_one(unit: Transaction, event_id: str, after: int) -> ErasedSlice | None:
    """Events of the call of this one, from this event on: of the same trace, principal and request."""
    row = unit.connection.execute(_EVENT, (event_id,)).fetchone()
    if row is None:
        return None
    trace_id, principal, stored = row
    own = call_of(bytes(stored))
    if own.request_hash is None or principal is None:
        return ErasedSlice([], None)
    rows = unit.connection.execute(_OF_TRACE, (trace_id, principal, after, after)).fetchall()
    calls = [call_of(bytes(data)) for _, data in rows]
    same = [one for one in calls if one.request_hash == own.request_hash]
    last = rows[-1][0] if rows else after
    if len(rows) == AT_ONCE:
        return ErasedSlice(same, last)
    return with_open(unit, same, last, OpenKept(principal, trace_id=trace_id, request_hash=own.request_hash))


def _some_of(unit: Transaction, principal: str | None, before: float | None, after: int) -> ErasedSlice:
    """Calls of a principal with kept values, before this time, from this event on."""
    until = _FOREVER if before is None else ceil(round(before * 1000, 2))
    rows = unit.connection.execute(_SOME, (after, until, principal)).fetchall()
    calls = [call_of(bytes(data)) for _, data in rows]
    last = rows[-1][0] if rows else after
    if len(rows) == AT_ONCE:
        return ErasedSlice(calls, last)
    return with_open(unit, calls, last, OpenKept(principal, before))


def with_open(unit: Transaction, calls: Sequence[ErasedCall], last: int, wanted: OpenKept) -> ErasedSlice:
    """These calls, the last ones with an event of their end, and some of unknown outcome."""
    room = AT_ONCE - len(calls)
    opened = open_kept_calls(unit, wanted, limit=room + 1)
    some = [*calls, *map(_open_call, opened.unknown[:room])]
    if len(opened.unknown) > room:
        return ErasedSlice(some, last)
    return ErasedSlice(some, None, opened.running)


def _open_call(one: OpenKeptCall) -> ErasedCall:
    return ErasedCall(intent_id=one.intent_id, approval_id=one.approval_id, request_hash=one.request_hash)


def _waits(unit: Transaction, call: ErasedCall) -> bool:
    """True for a call whose stored request a person may still approve."""
    if call.approval_id is None:
        return False
    unit.part = "approvals"
    approval = unit.store.hold_state(call.approval_id)
    unit.part = "ledger"
    return approval is not None and approval.state in (PENDING, CLAIMED)


def _lost(unit: Transaction, keys: Iterable[str]) -> list[_LostValue]:
    """The values of these calls. A value that can't be read is missing, and no erasing changes that."""
    opener, found = ValueOpener(unit.connection), list[_LostValue]()
    for key in keys:
        for pointer, value, salt in unit.connection.execute(_ROWS, (key,)).fetchall():
            if (opened := opener.opened(value, salt)) is not None:
                found.append(_LostValue(key, pointer, commitment(opened[1], opened[0]), number_of(bytes(value))))
    return found


def _empty(unit: Transaction, rows: Sequence[_LostValue], seq: int) -> None:
    """SECURITY: nothing of the values stays in the rows, nor in copies of them, nor in the journal."""
    is_file = not unit.state.database.is_shared
    forget_values(unit.connection, {row.key for row in rows}, is_file=is_file)
    unit.connection.executemany(_EMPTY, [(seq, row.key, row.pointer) for row in rows])
    if not is_file:
        return
    forget_keys(unit.connection, {row.number for row in rows if row.number is not None})
    unit.settle(is_forced=True)
    with erasing(unit.connection):
        unit.connection.execute("DELETE FROM journal")  # a row set to zeros would leave copies in pages above it
    unit.erase()


def _forget_requests(unit: Transaction, approval_ids: Iterable[str]) -> None:
    for approval_id in approval_ids:
        unit.part = "approvals"
        unit.store.forget_kept(approval_id)
        unit.erase()
    unit.part = "ledger"
