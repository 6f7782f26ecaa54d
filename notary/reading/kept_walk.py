"""Checks kept values: each commitment in an event has its row with value and salt, or an event that erased it.

Walks beside the walk along the chain (notary/reading/verify.py), in steps, with constant memory. A row is believed in
nothing: an erased one must name an EvidenceErased event that lists the commitment.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from ipc.evidence.events import EVIDENCE_ERASED
from ipc.evidence.kept_values import commitment
from notary.database import OpenTransaction
from notary.ledger.cut import NOTHING, Cut
from notary.ledger.encrypted_values import ValueOpener
from notary.ledger.kept_values import HAS_KEPT
from notary.ledger.page_ring import RingEntry
from notary.reading.verify import FIRST, Break, Stored

_ROWS: Final = "SELECT pointer, seq, value, salt, erased_by FROM kept_values WHERE key = ?"
_COUNT: Final = "SELECT count(*) FROM kept_values WHERE coalesce(seq, ?) > ?"
_WAITING: Final = "SELECT key, count(*) FROM kept_values WHERE key IN (SELECT intent_id FROM unresolved) GROUP BY key"
_LAST: Final = 2**62
_EVENT: Final = "SELECT bytes FROM events WHERE seq = ?"


class _ErasedList(msgspec.Struct, frozen=True):
    commitments: tuple[str, ...] = ()


class _Erasure(msgspec.Struct):
    event_type: str = ""
    change: _ErasedList = _ErasedList()


class KeptWalk:
    """Where a walk along one ledger has come to."""

    def __init__(self) -> None:
        self.rows = 0
        """Rows that were found to be what their events say."""
        self._has_table: bool | None = None
        self._last: int | None = None

    def begin(self, end: Cut) -> None:
        """The walk is along a segment that ends with this cut. Events behind it may have erased values before it was
        sealed."""
        self._last = end.events

    def step(self, connection: OpenTransaction, numbers: Sequence[int], events: Sequence[Stored]) -> Break | None:
        """Check the rows of these events, given their numbers."""
        for number, event in zip(numbers, events, strict=False):
            if event.kept is None:
                continue
            rows = self._read(connection, event.intent_id or event.event_id)
            if (problem := self._problem_of(connection, number, event.kept, rows)) is not None:
                return Break(event.event_id, number, problem)
        return None

    def journal(
        self, connection: OpenTransaction, entries: Sequence[RingEntry], events: Sequence[Stored]
    ) -> Break | None:
        """Check those of events that lie in the journal."""
        unsettled: dict[str, list[tuple[Any, ...]]] = {}
        for entry in entries:
            for key, pointer, seq, _, value, salt in entry.kept:
                unsettled.setdefault(key, []).append((pointer, seq, value, salt, None))
        for event in events:
            if event.kept is None:
                continue
            key = event.intent_id or event.event_id
            rows = unsettled.get(key) or self._read(connection, key)
            if (problem := self._problem_of(connection, None, event.kept, rows)) is not None:
                return Break(event.event_id, None, problem)
        return None

    def end(self, connection: OpenTransaction, entries: Sequence[RingEntry], hidden: Cut = NOTHING) -> Break | None:
        """Check that each row belongs to an event, or to an intent that waits for its end. Rows of events before
        `hidden` are left out."""
        ended = {key for entry in entries for key, _ in entry.kept_ends}
        there = waiting = 0
        if self._is_there(connection):
            (there,) = connection.execute(_COUNT, (_LAST, hidden.events or FIRST)).fetchone()
            waiting = sum(count for key, count in connection.execute(_WAITING).fetchall() if key not in ended)
        resolved = {one for entry in entries for one in entry.resolved}
        opened = {row[0] for entry in entries for row in entry.intents} - resolved
        for entry in entries:
            there += len(entry.kept)
            waiting += sum(row[0] in opened for row in entry.kept)
        if there == self.rows + waiting:
            return None
        return Break(None, None, f"kept values that belong to no event: {there - self.rows - waiting}")

    def _is_there(self, connection: OpenTransaction) -> bool:
        if self._has_table is None:
            self._has_table = connection.execute(HAS_KEPT).fetchone() is not None
        return self._has_table

    def _read(self, connection: OpenTransaction, key: str) -> list[tuple[Any, ...]]:
        return connection.execute(_ROWS, (key,)).fetchall() if self._is_there(connection) else []

    def _problem_of(
        self, connection: OpenTransaction, number: int | None, kept: Mapping[str, str], rows: Sequence[Sequence[Any]]
    ) -> str | None:
        found = {row[0]: row[1:] for row in rows}
        opener = ValueOpener(connection)
        for pointer, committed in kept.items():
            if pointer not in found:
                return f"its kept value {pointer} is missing, and no event erased it"
            seq, value, salt, erased_by = found[pointer]
            if number is not None and seq != number:
                return f"its kept value {pointer} is said to be of another event"
            if value is None and salt is None:
                if self._last is not None and isinstance(erased_by, int) and erased_by > self._last:
                    continue
                if erased_by is None or committed not in _erased_in(connection, erased_by):
                    return f"its kept value {pointer} is missing, and the event that is said to have erased it did not"
            elif erased_by is not None or not _agrees(committed, opener.opened(value, salt)):
                return f"its kept value {pointer} is not the one that it commits to"
        if len(found) != len(kept):
            return "it has kept values that it does not commit to"
        self.rows += len(found)
        return None


def _agrees(committed: str, opened: tuple[bytes, bytes] | None) -> bool:
    return opened is not None and commitment(opened[1], opened[0]) == committed


def _erased_in(connection: OpenTransaction, seq: Any) -> frozenset[str]:
    row = connection.execute(_EVENT, (seq,)).fetchone()
    return frozenset() if row is None else _commitments(bytes(row[0]))


@lru_cache(maxsize=4)
def _commitments(stored: bytes) -> frozenset[str]:
    try:
        erasure = msgspec.json.decode(stored, type=_Erasure)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return frozenset()
    return frozenset(erasure.change.commitments) if erasure.event_type == EVIDENCE_ERASED else frozenset()
