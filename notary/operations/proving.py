"""ReadCheckpoint, Prove and ProveConsistency: what the log holds, for a verifier who does not trust its owner.

The service has a checkpoint signed before one of these is performed, so that whatever was durable is covered.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from contract.evidence import Bundle, BundleKeys, Consistency, ProvenLeaf, ShownCheckpoint
from contract.noun import LEFT_OUT
from ipc.operations.evidence import Prove, ProveConsistency, ReadCheckpoint
from notary.checkpoints import public_keys
from notary.database import DatabaseGone
from notary.ledger import history
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf
from notary.reading.kept_proofs import KeptPart, kept_part
from notary.reading.queries import newest_note, note_of, read_note
from notary.tree.checkpoint import Checkpoint
from notary.tree.cosignatures import count_cosignatures
from notary.tree.notes import verifier_key
from notary.tree.tiles import Tree
from notary.units.performing import performs
from notary.units.transaction import Transaction

_EVENT = "SELECT seq, bytes, leaf FROM events WHERE event_id = ?"
_EVENT_OF_RECEIPT = "SELECT seq, events.bytes, leaf FROM events JOIN receipts USING (seq) WHERE receipt_id = ?"
_EVENTS_OF_TRACE = "SELECT seq, bytes, leaf FROM events WHERE trace_id = ? ORDER BY seq"
_EVENT_NUMBERED = "SELECT seq, bytes, leaf FROM events WHERE seq = ?"
_RECEIPT = "SELECT bytes FROM receipts WHERE seq = ?"
_INTENT = f"SELECT seq, {', '.join(INTENT_COLUMNS)}, leaf FROM intents WHERE intent_id = ?"  # noqa: S608 - columns


_LeafRecord = tuple[Literal["event", "intent"], int, bytes]
"""Kind, place in the log and bytes of a leaf."""


class _Names(msgspec.Struct):
    intent_id: str | None = None


_names_of = msgspec.json.Decoder(_Names).decode


@performs(ReadCheckpoint, proves=True)
def read_checkpoint(unit: Transaction, _asked: ReadCheckpoint) -> ShownCheckpoint:
    """See ReadCheckpoint. Raises DatabaseGone."""
    note, made = _newest(unit)
    return ShownCheckpoint(
        origin=made.origin, size=made.size, root=_text(made.root), time=made.time, unresolved_intents=made.unresolved,
        checkpoint=note, keys=_verifier_keys(unit, made.origin),
    )  # fmt: skip


@performs(Prove, proves=True, is_paced=True)
def prove(unit: Transaction, asked: Prove) -> Bundle | None:
    """See Prove. Raises DatabaseGone."""
    event, intent = _found(unit, asked)
    if event is None and intent is None:
        return None
    records: list[_LeafRecord] = []
    receipt, kept = None, KeptPart()
    if event is not None:
        seq, data, _ = event
        records.append(_event_leaf(event))
        kept = kept_part(unit.connection, bytes(data))
        row = unit.connection.execute(_RECEIPT, (seq,)).fetchone()
        receipt = None if row is None else _text(row[0])
    if intent is not None:
        seq, *columns, place = intent
        at = history.read(unit.connection).events + seq - 1 if place is None else place
        records.append(("intent", at, intent_leaf(columns)))
    found = [unit.connection.execute(_EVENT_NUMBERED, (number,)).fetchone() for number in kept.erased_by]
    erasures = [_event_leaf(row) for row in found if row is not None]
    note, made = _best(unit, max(place for _, place, _ in (*records, *erasures)))
    tree = Tree(unit.connection)
    leaves = tuple(_leaf(tree, made, *one) for one in records)
    keys = BundleKeys(
        checkpoints=_verifier_keys(unit, made.origin), receipts=unit.state.signers.keys.receipt.jwks(),
        witnesses=tuple(key.text for key in unit.state.witnesses.keys.values()),
    )  # fmt: skip
    return Bundle(
        bundle_version=1, origin=made.origin, receipt=receipt, leaves=leaves, checkpoint=note, keys=keys,
        kept=kept.values or LEFT_OUT, erasures=tuple(_leaf(tree, made, *one) for one in erasures) or LEFT_OUT,
    )  # fmt: skip


@performs(ProveConsistency, proves=True, is_paced=True)
def prove_consistency(unit: Transaction, asked: ProveConsistency) -> Consistency | None:
    """See ProveConsistency. Raises DatabaseGone."""
    note, made = _newest(unit)
    if not 0 <= asked.old_size <= made.size:
        return None
    path = Tree(unit.connection).consistency_proof(asked.old_size, made.size)
    return Consistency(old_size=asked.old_size, proof=tuple(map(_text, path)), checkpoint=note)


def _newest(unit: Transaction) -> tuple[str, Checkpoint]:
    note = newest_note(unit.connection)
    if note is None:
        raise DatabaseGone("no checkpoint could be signed")
    return note, read_note(note)


def _best(unit: Transaction, place: int) -> tuple[str, Checkpoint]:
    """The newest of those checkpoints that cover a leaf and have the most cosignatures."""
    best, known = _newest(unit), unit.state.witnesses
    keys = tuple(known.keys.values())
    if not known.cosigned:
        return best
    others = [note_of(unit.connection, one.size) for one in known.cosigned.values() if one.size > place]
    read = (best, *((note, read_note(note)) for note in others if note is not None))
    return max(read, key=lambda one: (one[1].origin == best[1].origin, count_cosignatures(one[0], keys), one[1].size))


def _found(unit: Transaction, asked: Prove) -> tuple[Any, Any]:
    """The rows of an event and of its intent, as far as they are there."""
    event, intent_id = None, asked.intent_id
    if asked.event_id is not None:
        event = unit.connection.execute(_EVENT, (asked.event_id,)).fetchone()
    elif asked.receipt_id is not None:
        event = unit.connection.execute(_EVENT_OF_RECEIPT, (asked.receipt_id,)).fetchone()
    if event is not None:
        intent_id = _names_of(event[1]).intent_id
    intent = None if intent_id is None else unit.connection.execute(_INTENT, (intent_id,)).fetchone()
    if event is None and intent is not None:
        trace_id = intent[1 + INTENT_COLUMNS.index("trace_id")]
        ends = unit.connection.execute(_EVENTS_OF_TRACE, (trace_id,))
        event = next((row for row in ends if _names_of(row[1]).intent_id == intent_id), None)
    return event, intent


def _event_leaf(row: Sequence[Any]) -> _LeafRecord:
    seq, data, place = row
    return "event", seq - 1 if place is None else place, data


def _leaf(tree: Tree, made: Checkpoint, kind: Literal["event", "intent"], place: int, data: bytes) -> ProvenLeaf:
    if place >= made.size:
        raise DatabaseGone(f"no checkpoint covers leaf {place} yet")
    path = tree.inclusion_proof(place, made.size)
    return ProvenLeaf(kind=kind, index=place, bytes=_text(data), proof=tuple(map(_text, path)))


def _verifier_keys(unit: Transaction, origin: str) -> tuple[str, ...]:
    return tuple(verifier_key(origin, key) for key in reversed(public_keys(unit.state.signers)))


def _text(data: bytes) -> str:
    return b64encode(data).decode()
