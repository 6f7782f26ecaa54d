"""Checks that what events name exists and agrees: receipts, intents that ended, the epoch.

Walks beside the walk along the chain (notary/reading/verify.py), in steps, with constant memory. The tables of receipts
and of intents that wait are believed in nothing: a receipt is the one whose hash its event has, and an intent waits
when no event ended it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.evidence.events import INTENT_VERIFICATION, LEDGER_SEALED, STANDING_ADDED
from ipc.texts.canonical import NotCanonical, sha256_hex
from notary.database import OpenTransaction
from notary.ledger.cut import NOTHING, Cut, signed_bytes
from notary.ledger.page_ring import RingEntry
from notary.ledger.receipts import decode_receipt
from notary.reading.ends import RAISING, epoch_raised
from notary.reading.standing import LedgerNames, NamedAt, problem_of_standing
from notary.reading.verify import FIRST, Break, Stored
from notary.signing.receipt_keys import ReceiptKeys
from notary.store import proofs

Rows = Sequence[Sequence[Any]]
"""Rows of events: EVENT_COLUMNS."""
Receipts = Mapping[int, Sequence[Any]]
"""Number -> receipt_id, approval_id, bytes."""

_RECEIPTS: Final = "SELECT seq, receipt_id, approval_id, bytes FROM receipts WHERE seq BETWEEN ? AND ?"
_NO_INTENT: Final = """
SELECT unresolved.intent_id FROM unresolved LEFT JOIN intents USING (seq)
WHERE intents.intent_id IS NULL OR intents.intent_id <> unresolved.intent_id LIMIT 1
"""
# The event that ended an intent is one of its trace.
_ENDED: Final = f"""
SELECT events.seq, events.event_id, unresolved.intent_id
FROM unresolved CROSS JOIN intents USING (seq) CROSS JOIN events ON events.trace_id = intents.trace_id
WHERE json_extract(CAST(events.bytes AS TEXT), '$.intent_id') = unresolved.intent_id
AND events.event_type <> '{INTENT_VERIFICATION}' LIMIT 1
"""  # noqa: S608 - a name of ours
_LEAF: Final = 10
"""Where a row of an event has its place in the tree, once it has left the journal."""

SIGNATURE_PROBLEMS: Final = {
    "unsigned": "has no signature",
    "unknown_kid": "is signed by a key that the key file does not list",
    "signature_invalid": "does not have the content that was signed",
}


class _SealedCut(msgspec.Struct):
    """The cut as a LedgerSealed event names it."""

    segment: str = ""
    digest: str = ""
    leaves: int = 0
    events: int = 0
    intents: int = 0


class _SealingEvent(msgspec.Struct):
    change: _SealedCut = msgspec.field(default_factory=_SealedCut)


class _SignedEvent(msgspec.Struct):
    change: dict[str, Any]


_decode_sealing = msgspec.json.Decoder(_SealingEvent).decode
_decode_signed = msgspec.json.Decoder(_SignedEvent).decode


class NamedWalk:
    """Where a walk along one ledger has come to. Without `keys` signatures of receipts are not looked at."""

    def __init__(self, keys: ReceiptKeys | None = None) -> None:
        self.receipts = 0
        """Found to be what their events say."""
        self.unresolved = 0
        self._keys = keys
        self._ended = 0
        self._next = FIRST
        self._epoch = 0
        self._raised_by: tuple[str, int] | None = None
        self._opened_before = 0
        self._ended_after = 0
        self._names = LedgerNames()
        self._sealed = _SealedCut()
        """The cut that the last LedgerSealed event names."""
        self._sealing = b""
        """The stored bytes of that event."""

    def begin(self, beginning: Cut, end: Cut = NOTHING) -> None:
        """The walk is along the part of a ledger between two cuts; NOTHING: to its end."""
        self._epoch, self._opened_before, self._ended_after = beginning.epoch, beginning.open, end.open
        self._next = beginning.events + 1 if beginning.events else FIRST

    def step(self, connection: OpenTransaction, rows: Rows, events: Sequence[Stored]) -> Break | None:
        """Check what these events name, given their rows."""
        if not events:
            return None
        last = rows[len(events) - 1][0]
        receipts = {row[0]: row[1:] for row in connection.execute(_RECEIPTS, (self._next, last))}
        self._next = last + 1
        return self.check(rows, events, receipts)

    def check(self, rows: Rows, events: Sequence[Stored], receipts: Receipts) -> Break | None:
        """Check what these events name, given their rows and receipts."""
        naming = [
            (row, event) for row, event in zip(rows, events, strict=False)
            if event.intent_id is not None or event.receipt_id is not None or row[0] in receipts
            or event.event_type in RAISING or event.event_type in (STANDING_ADDED, LEDGER_SEALED)
        ]  # fmt: skip
        for row, event in naming:
            if event.intent_id is not None and event.event_type != INTENT_VERIFICATION:  # which only looked
                self._ended += 1
            if event.event_type in RAISING and (raised := epoch_raised(row[9])) > self._epoch:
                self._epoch, self._raised_by = raised, (event.event_id, row[0])
            if event.event_type == STANDING_ADDED:
                self._names.add(event.standing_signature)
            if event.event_type == LEDGER_SEALED:
                self._sealed, self._sealing = _told_in(row[9]), row[9]
            if event.receipt_id is None and row[0] not in receipts:
                continue
            problem = self._problem_of(event, receipts.get(row[0], (None, None, None)), row)
            if problem is not None:
                return Break(event.event_id, row[0], problem)
            self.receipts += 1
        return None

    def _problem_of(self, event: Stored, receipt: Sequence[Any], row: Sequence[Any]) -> str | None:
        receipt_id, approval_id, stored = receipt
        if receipt_id is None or receipt_id != event.receipt_id:
            return f"it names the receipt {event.receipt_id}, and the one beside it is {receipt_id}"
        if approval_id != event.approval_id:
            return f"the columns of its receipt {receipt_id} do not say what the receipt and the event say"
        is_named = isinstance(stored, bytes) and event.receipt_hash == sha256_hex(stored)
        if is_named and self._keys is None and event.standing_id is None:
            return None
        try:
            told = decode_receipt(stored)
        except (ValueError, TypeError):
            return f"the bytes of its receipt {receipt_id} are not those of a receipt"
        if told.receipt_id != receipt_id:
            return f"the columns of its receipt {receipt_id} do not say what the receipt and the event say"
        if self._keys is not None and (status := self._keys.status(told)) != "verified":
            return f"its receipt {receipt_id} {SIGNATURE_PROBLEMS[status]}"
        if event.receipt_hash is not None and not is_named:
            return f"its receipt {receipt_id} is not the one whose hash it has"
        problem = problem_of_standing(told, event.standing_id)
        leaf = row[_LEAF] if len(row) > _LEAF else None
        if problem is None and not self._names.use(told, NamedAt(event.event_id, row[0], leaf)):
            problem = "has a standing approval of one more ledger than are remembered"
        return None if problem is None else f"its receipt {receipt_id} {problem}"

    def end(self, connection: OpenTransaction, entries: Sequence[RingEntry], hidden: Cut = NOTHING) -> Break | None:
        """Check counts, and that what waits does wait; in the transaction of the last step. Receipts and intents before
        `hidden` are left out."""
        receipts, intents, unresolved = (
            connection.execute(f"SELECT count(*) FROM {table} WHERE seq > ?", (last or FIRST,)).fetchone()[0]  # noqa: S608
            for table, last in (("receipts", hidden.events), ("intents", hidden.intents), ("unresolved", 0))
        )
        begun = sum(len(entry.intents) for entry in entries)
        receipts += sum(len(entry.receipts) for entry in entries)
        intents += begun
        self.unresolved = unresolved + begun - sum(len(entry.resolved) for entry in entries)
        if receipts != self.receipts:
            return Break(None, None, f"receipts that belong to no event: {receipts - self.receipts}")
        if (row := connection.execute(_NO_INTENT).fetchone()) is not None:
            return Break(str(row[0]), None, "it waits for its end, and no intent with its number has this id")
        if (row := connection.execute(_ENDED).fetchone()) is not None:
            return Break(str(row[1]), row[0], f"it ended the intent {row[2]}, which is said to wait")
        if intents + self._opened_before != self._ended + self.unresolved + self._ended_after:
            return Break(
                None, None, f"{intents} intents are there, {self._ended} resolved by events and {self.unresolved} open"
            )
        return None

    def check_beginning(self, beginning: Cut) -> Break | None:
        """Check that an event, signed by one of the keys if there are any, tells of the cut that a ledger begins
        behind: else its first events were taken out, and are in no segment."""
        cut = _SealedCut(beginning.segment, beginning.digest, beginning.leaves, beginning.events, beginning.intents)
        if beginning == NOTHING:
            return None
        before = f"the {beginning.events} events before it were sealed"
        if self._sealed != cut:
            return Break(None, None, f"no event tells that {before}")
        if self._keys is not None and not _is_signed(self._sealing, self._keys):
            return Break(None, None, f"the event that tells that {before} is not signed by a key that was given")
        return None

    def check_names(self, names: Collection[str], committed: int) -> Break | None:
        """Check that each standing approval was signed for this ledger, which had these names: see LedgerNames."""
        at = self._names.foreign(names, committed)
        return (
            None if at is None else Break(at.event_id, at.seq, "its receipt has a standing approval of another ledger")
        )

    def check_epoch(self, connection: OpenTransaction) -> Break | None:
        """Check that no revocation has ended the epoch in force."""
        epoch = proofs.known_epoch(connection)
        if epoch is not None and epoch >= self._epoch:
            return None
        event_id, seq = self._raised_by or (None, None)
        current = "none" if epoch is None else epoch
        return Break(event_id, seq, f"it raised the epoch to {self._epoch}, and the one in force is {current}")


def _told_in(stored: bytes) -> _SealedCut:
    """The cut that a LedgerSealed event names; an empty one if it names none."""
    try:
        return _decode_sealing(stored).change
    except msgspec.MsgspecError:
        return _SealedCut()


def _is_signed(stored: bytes, keys: ReceiptKeys) -> bool:
    """True if one of the keys has signed what a LedgerSealed event tells.

    SECURITY: an attacker who can write a ledger can append an event, and the next checkpoint commits to it.
    """
    try:
        told = _decode_signed(stored).change
        return keys.has_signed(signed_bytes(told), told.get("signature"), told.get("signing_key_id"))
    except (msgspec.MsgspecError, NotCanonical):
        return False
