"""The journal: what the last units wrote, in pages that are used again and again, until it is moved to its tables.

A unit writes one entry: as few pages as its bytes need, and no index. Settling moves entries to the tables that queries
read (notary/ledger/settling.py). Guarantees that an entry is read whole or found to be damaged, and that one which is
not settled yet is never written over. Owns the table `journal` and `settled` in `meta`; knows no transaction.
"""

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.kept_values import KeptEnd, KeptRow
from notary.store.proofs import ProofRow

SLOTS = 512
"""Rows of the ring, two megabytes once it has gone round. The more are settled at once, the fewer pages of indexes are
written again and again."""
SLOT_BYTES = 4056
"""One row fills one page of 4096 bytes: a change that keeps the length writes that page and no other."""
_HEADER = struct.Struct(">QIII")
"""Number of the unit, which piece this is, of how many, and bytes of the whole entry."""
_PIECE_BYTES = SLOT_BYTES - _HEADER.size

TABLES = (
    "CREATE TABLE journal (slot INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT",
    "INSERT INTO meta (key, value) VALUES ('settled', '0')",
)
_WRITE = "INSERT INTO journal (bytes, slot) VALUES (?, ?) ON CONFLICT (slot) DO UPDATE SET bytes = excluded.bytes"

IntentRow = tuple[str, str, str, str, str, str, str, str, str | None, str, bytes]
EventRow = tuple[int, str, str, int, str | None, str | None, str | None, str | None, str | None, bytes]
ReceiptRow = tuple[int, str, str | None, bytes]
Remembered = tuple[str, int, bytes, str | None, str | None, str | None]
"""Front, number, and the outcome of an operation with its value encoded."""


class RingEntry(msgspec.Struct, array_like=True):
    """Rows that a unit writes, in the order of their columns, and what it answered."""

    proofs: list[ProofRow] = []
    intents: list[IntentRow] = []
    resolved: list[str] = []
    """Ids of intents that wait no more."""
    events: list[EventRow] = []
    receipts: list[ReceiptRow] = []
    head: tuple[int, str | None] | None = None
    """The head of the chain after this unit; None when it wrote no event."""
    answers: list[Remembered] = []
    event_leaves: list[int] = []
    """Place of each event in the tree. None in an entry from before there was a tree."""
    intent_leaves: list[int] = []
    kept: list[KeptRow] = []
    """Kept values of the calls that it opens, holds, refuses or ends."""
    kept_ends: list[KeptEnd] = []

    @property
    def is_settled(self) -> bool:
        """True if it has no row for a table."""
        return not (self.proofs or self.intents or self.resolved or self.events)


class RingContent(NamedTuple):
    """The contents of a journal. `settled` is the number of the last unit whose rows are in their tables, `last` that
    of the newest unit here, `slot` the one after it."""

    entries: list[RingEntry]
    """Entries of units that are not settled, oldest first."""
    settled: int
    last: int
    slot: int
    answers: list[Remembered] | None
    """Answers of the newest unit; None when `last_unit` has them."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RingEntry).decode


def pieces_of(entry: RingEntry, number: int) -> list[bytes]:
    """An entry as the bytes of slots. Raises what msgspec raises for what can't be written."""
    data = _encode(entry)
    size = len(data)
    starts = range(0, size, _PIECE_BYTES)
    return [
        (_HEADER.pack(number, piece, len(starts), size) + data[at : at + _PIECE_BYTES]).ljust(SLOT_BYTES, b"\0")
        for piece, at in enumerate(starts)
    ]


def write(connection: OpenTransaction, pieces: list[bytes], slot: int) -> None:
    """Write an entry into this slot and those after it."""
    if len(pieces) == 1:
        connection.execute(_WRITE, (pieces[0], slot))
    else:
        connection.executemany(_WRITE, [(piece, (slot + at) % SLOTS) for at, piece in enumerate(pieces)])


def read(connection: OpenTransaction) -> RingContent:
    """Read the whole journal. Raises DatabaseGone if it is damaged."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'settled'").fetchone()
    slots = connection.execute("SELECT slot, bytes FROM journal").fetchall()
    try:
        return _found(int(row[0]), slots)
    except (TypeError, ValueError, struct.error, RecursionError, msgspec.MsgspecError) as error:
        raise DatabaseGone(f"the journal makes no sense: {error}") from None


def _found(settled: int, slots: Iterable[tuple[int, bytes]]) -> RingContent:
    units: dict[int, dict[int, tuple[int, bytes, int, int]]] = {}
    last = 0
    for slot, data in slots:
        number, piece, count, size = _HEADER.unpack_from(data)
        units.setdefault(number, {})[piece] = (slot, data[_HEADER.size :], count, size)
        last = max(last, number)
    if not last or last < settled:  # none yet, or the newest unit was too large to be here
        return RingContent([], settled, settled, 0, None)
    entries = [_entry(units.get(number, {}), number) for number in range(min(settled + 1, last), last + 1)]
    slot, _, count, _ = units[last][0]
    return RingContent(entries if last > settled else [], settled, last, (slot + count) % SLOTS, entries[-1].answers)


def _entry(pieces: dict[int, Any], number: int) -> RingEntry:
    if 0 not in pieces or sorted(pieces) != list(range(pieces[0][2])):
        raise ValueError(f"unit {number} is not whole")
    _, _, count, size = pieces[0]
    entry = _decode(b"".join(pieces[at][1] for at in range(count))[:size])
    places = (len(entry.event_leaves), len(entry.intent_leaves))
    if places not in ((len(entry.events), len(entry.intents)), (0, 0)):
        raise ValueError(f"unit {number} has not a place in the tree for each event and intent")
    return entry
