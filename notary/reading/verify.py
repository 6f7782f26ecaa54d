"""The chain walker: is what the ledger holds what was written, whole and in order?

Shared by the running gateway and by the offline check. Reads each event once, in the order of insertion, with constant
memory; stops at the first one that does not fit, and says why. Believes neither columns nor counts.
"""

import sqlite3
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ipc.evidence import VerifyReport
from notary.backends.sqlite import DatabaseGone
from notary.ledger.chain import milliseconds
from notary.ledger.head import Head, read_head
from notary.ledger.settling import head_with, unsettled
from notary.reading.tree_walk import Misplaced, Proven, TreeWalk

CHUNK = 256
COLUMNS = ("event_id", "event_type", "time", "trace_id", "principal", "session_id", "action_id", "decision")
EVENT_COLUMNS = ", ".join(f"events.{name}" for name in ("seq", *COLUMNS, "bytes", "leaf"))
_READ = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq >= ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608 - names above


class _Stored(msgspec.Struct):
    """The fields of an event that a column repeats, and its link."""

    event_id: str
    event_type: str
    timestamp: str
    trace_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    action_id: str | None = None
    decision: str | None = None
    prev_hash: str | UnsetType | None = UNSET


_decode = msgspec.json.Decoder(_Stored).decode


class Break(msgspec.Struct, frozen=True):
    """The first thing that does not fit. `seq` is the place to look at, None when there is none to show."""

    event_id: str | None
    seq: int | None
    reason: str


class Walk:
    """Where a walk along one chain has come to."""

    def __init__(self, head: Head | None = None, last_id: str | None = None) -> None:
        self.head = head or Head()
        self.last_id = last_id

    @property
    def next_seq(self) -> int:
        """Where to read on. At first the smallest of all numbers: what was put in front must not go unseen."""
        return self.head.seq + 1 if self.head.seq else -(2**63)

    def step(self, rows: Iterable[tuple[Any, ...]]) -> Break | None:
        """Check the next events: rows of EVENT_COLUMNS, in order."""
        seq, linked = self.head.seq, self.head.hash
        last_id, found = self.last_id, None
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
                    continue
                reason = _reason(row, event, repeated, seq, linked, last_id)
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
                reason = "its bytes are not those of an event"
            found = Break(str(row[1]), row[0], reason)
            break
        self.head, self.last_id = Head(seq, linked), last_id
        return found

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
    row: tuple[Any, ...], event: _Stored, repeated: tuple[Any, ...], seq: int, linked: str | None, last_id: str | None
) -> str:
    if row[0] != seq + 1:
        return f"event number {seq + 1} is missing before it"
    if event.prev_hash != linked:
        if last_id is None:
            return "prev_hash does not match: the first event must have none"
        return f"prev_hash does not match the bytes of the event before it, {last_id}"
    wrong = [name for name, column, told in zip(COLUMNS, row[1:9], repeated, strict=True) if column != told]
    return f"column {wrong[0]} does not say what the event says"


def walk_on(connection: sqlite3.Connection, walk: Walk, tree: TreeWalk) -> VerifyReport | None:
    """Check the next CHUNK events, in the chain and in the tree; the report once the walk has come to an end.

    Events that are appended meanwhile are walked too. A page that SQLite can't read is a break like any other.
    Raises sqlite3.Error for everything else.
    """
    broken: Break | None = None
    total = 0
    try:
        rows = connection.execute(_READ, (walk.next_seq,)).fetchall()
        broken = walk.step(rows)
        if broken is None:
            tree.step(connection, rows)
            if len(rows) == CHUNK or tree.has_more:
                return None
        entries = unsettled(connection)
        broken = broken or walk.step(row for entry in entries for row in entry.events)
        head = head_with(connection, entries)
        total = head.seq if head else walk.head.seq
        broken = broken or walk.end(head)
        if broken is None:
            proven = tree.end(connection, entries)
            return report_of(walk, None, total, proven)
    except Misplaced as error:
        broken = Break(error.name, error.seq, error.reason)
        head = read_head(connection)
        total = total or (head.seq if head else walk.head.seq)
    except DatabaseGone as error:
        broken = broken or Break(walk.last_id, walk.head.seq or None, f"what comes after it can't be read: {error}")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        broken = broken or Break(walk.last_id, walk.head.seq or None, f"the file is damaged after it: {error}")
    return report_of(walk, broken, total)


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """True when SQLite found a page that can't be one of its own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def report_of(walk: Walk, found: Break | None, total: int, proven: Proven | None = None) -> VerifyReport:
    """The outcome of a walk in the interface's words."""
    size, root, note = proven or Proven(0, None, None)
    return VerifyReport(
        intact=found is None,
        events_checked=walk.head.seq,
        broken_at=None if found is None else (found.event_id or "head"),
        total_events=total,
        verified_links=walk.head.seq,
        reason=None if found is None else found.reason,
        head=walk.head.hash,
        size=size,
        root=None if root is None else b64encode(root).decode(),
        checkpoint=note,
    )
