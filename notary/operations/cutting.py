"""Cuts a ledger at the end of a segment that is durable: the event `LedgerSealed` and the ledger's new beginning.

One unit of the notary, which deletes nothing yet (notary/sealing/clearing.py does). SECURITY: the ledger judges in this
unit whether the segment is its next part, and old enough, whichever process wrote it.
"""

from base64 import b64encode
from typing import Any, Final

import msgspec

from ipc.evidence.events import LEDGER_SEALED, AuditEvent
from ipc.operations.operation import Operation
from ipc.operations.sealed import ListSegments, SealedSegment
from ipc.process.clock import parse_iso
from ipc.process.logs import log
from ipc.texts.identifiers import new
from notary.database import OpenTransaction
from notary.ledger import kept_values, segments
from notary.ledger.chain import event_hash
from notary.ledger.cut import BEGINNING, CLEARED, Cut, read_cleared, read_cut, signed_bytes, write_cut
from notary.tree.tiles import Tree
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

LEAST_AGE_SECONDS: Final = 86_400.0
"""Holds, polls and receipts that agents still ask for are younger."""
TOO_YOUNG: Final = "what is younger than a day may still be asked for"
NOT_ERASED: Final = "evidence.keep_days erases no value in a segment, and values of that time are not erased yet"
ERASED: Final = "kept values were erased meanwhile: seal again"
_ERASED_SINCE: Final = "SELECT 1 FROM kept_values WHERE erased_by > ? AND seq <= ? LIMIT 1"
_EVENT_ID: Final = "SELECT event_id FROM events WHERE seq = ?"
_EVENT: Final = "SELECT bytes, leaf FROM events WHERE seq = ?"
_LATER_INTENT: Final = "SELECT 1 FROM intents WHERE seq > ? LIMIT 1"
_OPEN: Final = "SELECT 1 FROM unresolved WHERE seq <= ? LIMIT 1"


class SealedRange(msgspec.Struct, frozen=True):
    """A segment as it was written: where it begins and ends, and the last event that the ledger had before it was
    copied."""

    beginning: Cut
    end: Cut
    newest: int
    by: str = ""
    """The user who sealed."""


class CutOff(Operation[int], frozen=True):
    """Asked by the notary itself, for its supervisor: cut the ledger at the end of this segment. The answer is the
    number of rows that are still to be deleted. A second time it changes nothing. NotAllowed: it can't be cut here."""

    sealed: SealedRange


@performs(ListSegments)
def list_segments(unit: Transaction, _asked: ListSegments) -> tuple[SealedSegment, ...]:
    """See ListSegments. Raises DatabaseGone."""
    return segments.read(unit.connection)


@performs(CutOff, writes=True, settles=True)
def cut_off(unit: Transaction, asked: CutOff) -> int:
    """See CutOff. Raises NotAllowed."""
    sealed, connection = asked.sealed, unit.connection
    beginning, end = read_cut(connection, BEGINNING), sealed.end
    if beginning != end:
        unit.settle()
        if (problem := _problem_of(unit, sealed, beginning)) is not None:
            raise NotAllowed(problem)
        event = AuditEvent(event_type=LEDGER_SEALED, trace_id=new("trc_"), principal="gateway", decision="allow")
        told = _told(sealed)
        signature = unit.state.signers.receipts.sign(signed_bytes(told))
        unit.append(event, change=told | {"signature": signature.value, "signing_key_id": signature.kid})
        write_cut(connection, CLEARED, Cut(events=beginning.events, intents=beginning.intents, hash=beginning.hash))
        write_cut(connection, BEGINNING, end)
        (last_event_id,) = connection.execute(_EVENT_ID, (end.events,)).fetchone()
        segments.add(connection, SealedSegment(end.segment, end.until, last_event_id))
        unit.after(lambda: log.info("the ledger is sealed", segment=end.segment, until=end.until))
    return left_to_clear(connection)


def left_to_clear(connection: OpenTransaction) -> int:
    """How many sealed events and intents are still in the ledger. Raises DatabaseGone."""
    cleared, beginning = read_cleared(connection), read_cut(connection, BEGINNING)
    return 0 if cleared is None else beginning.events - cleared.events + beginning.intents - cleared.intents


def _told(sealed: SealedRange) -> dict[str, Any]:
    end = sealed.end
    told = {
        "segment": end.segment, "digest": end.digest, "leaves": end.leaves, "events": end.events,
        "intents": end.intents, "root": b64encode(bytes.fromhex(end.root)).decode(), "until": end.until,
    }  # fmt: skip
    return told | ({"by": sealed.by} if sealed.by else {})


def _problem_of(unit: Transaction, sealed: SealedRange, beginning: Cut) -> str | None:
    connection, end = unit.connection, sealed.end
    if read_cleared(connection) is not None:
        return "rows of the segment before it are still being deleted"
    if beginning != sealed.beginning:
        return "the ledger was sealed meanwhile, and does not begin where the segment does"
    tree = Tree(connection)
    if not beginning.leaves < end.leaves <= tree.size or tree.root(end.leaves).hex() != end.root:
        return "the segment is not a part of this ledger"
    last, following = (connection.execute(_EVENT, (seq,)).fetchone() for seq in (end.events, end.events + 1))
    if last is None or following is None or event_hash(bytes(last[0])) != end.hash:
        return "the segment does not end with an event of this ledger"
    if end.events + end.intents != end.leaves or not last[1] < end.leaves <= following[1]:
        return "the segment does not end with its tree"
    if end.intents > beginning.intents and connection.execute(_LATER_INTENT, (end.intents,)).fetchone() is None:
        return "the newest intent stays in the ledger"
    if parse_iso(end.until) > unit.now - LEAST_AGE_SECONDS:
        return TOO_YOUNG
    if connection.execute(_OPEN, (end.intents,)).fetchone() is not None:
        return "a call of the segment has no end yet"
    if unit.state.settings.evidence.keep_days and kept_values.has_values(connection, end.events):
        return NOT_ERASED
    # SECURITY: values may have been erased that the copy still has.
    if connection.execute(_ERASED_SINCE, (sealed.newest, end.events)).fetchone() is not None:
        return ERASED
    return None
