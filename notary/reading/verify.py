"""The chain walker: is what the ledger holds what was written, whole and in order?

The first of the walks of notary/reading/whole.py. Reads each event once, in the order of insertion, with constant
memory; stops at the first one that does not fit, and says why. Believes neither columns nor counts.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from notary.ledger.chain import milliseconds
from notary.ledger.head import Head

CHUNK = 256
"""Rows that are read at once. More do not fit the processor's cache, and take longer."""
FIRST = -(2**63)
"""The smallest of all numbers: what was put in front must not go unseen."""
COLUMNS = ("event_id", "event_type", "time", "trace_id", "principal", "session_id", "action_id", "decision")
EVENT_COLUMNS = ", ".join(("seq", *COLUMNS, "bytes", "leaf"))


class Stored(msgspec.Struct, gc=False):
    """The fields of an event that a column repeats, its link, and what it names."""

    event_id: str
    event_type: str
    timestamp: str
    trace_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    action_id: str | None = None
    decision: str | None = None
    prev_hash: str | UnsetType | None = UNSET
    receipt_id: str | None = None
    receipt_hash: str | None = None
    intent_id: str | None = None
    approval_id: str | None = None
    standing_id: str | None = None
    standing_signature: str | None = None
    kept: dict[str, str] | None = None


_decode = msgspec.json.Decoder(Stored).decode
_NO_EVENT = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


class Break(msgspec.Struct, frozen=True):
    """The first fault. `seq` is the event to look at, if there is one."""

    event_id: str | None
    seq: int | None
    reason: str


class Walk:
    """Where a walk along one chain has come to."""

    def __init__(self, head: Head | None = None, last_id: str | None = None) -> None:
        self.head = head or Head()
        self.last_id = last_id
        self.events: list[Stored] = []
        """Those that the last step found to fit."""

    @property
    def next_seq(self) -> int:
        """Where to read on."""
        return self.head.seq + 1 if self.head.seq else FIRST

    def step(self, rows: Iterable[tuple[Any, ...]]) -> Break | None:
        """Check the next events: rows of EVENT_COLUMNS, in order."""
        rows = list(rows)
        return None if self._step_at_once(rows) else self._step_by_one(rows)

    def _step_at_once(self, rows: Sequence[Sequence[Any]]) -> bool:
        """Whether all of them fit: comparing whole lists takes a third less than one event after the other."""
        seq = self.head.seq
        try:
            events = [_decode(row[9]) for row in rows]
            told = [
                (number, event.event_id, event.event_type, milliseconds(event.timestamp), event.trace_id,
                 event.principal, event.session_id, event.action_id, event.decision)
                for number, event in enumerate(events, seq + 1)
            ]  # fmt: skip
            hashes = [self.head.hash, *["sha256:" + sha256(row[9]).hexdigest() for row in rows]]
        except _NO_EVENT:
            return False
        if told != [row[:9] for row in rows] or [event.prev_hash for event in events] != hashes[:-1]:
            return False
        self.head, self.events = Head(seq + len(events), hashes[-1]), events
        self.last_id = events[-1].event_id if events else self.last_id
        return True

    def _step_by_one(self, rows: Iterable[Sequence[Any]]) -> Break | None:
        """The same up to the first that does not fit."""
        seq, linked = self.head.seq, self.head.hash
        last_id, problem, events = self.last_id, None, list[Stored]()
        for row in rows:
            try:
                event = _decode(row[9])
                repeated = (
                    event.event_id, event.event_type, milliseconds(event.timestamp), event.trace_id, event.principal,
                    event.session_id, event.action_id, event.decision,
                )  # fmt: skip
                if row[0] == seq + 1 and event.prev_hash == linked and row[1:9] == repeated:
                    seq, last_id = row[0], row[1]
                    linked = "sha256:" + sha256(row[9]).hexdigest()
                    events.append(event)
                    continue
                reason = _reason(row, event, repeated, seq, linked, last_id)
            except _NO_EVENT:
                reason = "its bytes are not those of an event"
            problem = Break(str(row[1]), row[0], reason)
            break
        self.head, self.last_id, self.events = Head(seq, linked), last_id, events
        return problem

    def end(self, head: Head | None) -> Break | None:
        """Check that the chain ends where the ledger says that it ends."""
        if head == self.head:
            return None
        seq = self.head.seq or None
        if head is None:
            return Break(self.last_id, seq, "the ledger does not say where its chain ends")
        if head.seq > self.head.seq:
            missing = head.seq - self.head.seq
            return Break(self.last_id, seq, f"the last {missing} of {head.seq} events are missing after this one")
        if head.seq < self.head.seq:
            return Break(self.last_id, seq, f"the ledger says that it has {head.seq} events, and this is one more")
        return Break(self.last_id, seq, "the last event's bytes do not have the hash that the ledger keeps of them")


def _reason(
    row: Sequence[Any], event: Stored, repeated: tuple[Any, ...], seq: int, linked: str | None, last_id: str | None
) -> str:
    if row[0] != seq + 1:
        return f"event number {seq + 1} is missing before it"
    if event.prev_hash != linked:
        if last_id is None:
            return "prev_hash does not match: the first event must have none"
        return f"prev_hash does not match the bytes of the event before it, {last_id}"
    wrong = [name for name, column, told in zip(COLUMNS, row[1:9], repeated, strict=True) if column != told]
    return f"column {wrong[0]} does not say what the event says"
