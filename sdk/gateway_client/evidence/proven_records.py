"""An entry of the log as a bundle has it: proven to be in the tree of a checkpoint, then read."""

from gateway_client.contract.evidence import ProvenLeaf
from gateway_client.errors import EvidenceRefused
from gateway_client.evidence.notes import Checkpoint, unbase64
from gateway_client.evidence.records import Record
from gateway_client.evidence.tree import check_inclusion, leaf_hash
from gateway_client.wire.decoding import INTEGERS


def record_in(leaf: ProvenLeaf, log: Checkpoint) -> Record:
    """The event or intent. Raises EvidenceRefused unless it is in the tree of the checkpoint."""
    data = decoded(leaf.bytes, f"The {leaf.kind} in the bundle")
    proof = [decoded(sibling, f"A hash of the proof of the {leaf.kind}") for sibling in leaf.proof]
    if leaf.index not in INTEGERS:
        raise EvidenceRefused("bundle_malformed", f"The place of the {leaf.kind} is no integer of 64 bits.")
    try:
        check_inclusion(leaf_hash(data), leaf.index, log.size, proof, log.root)
    except EvidenceRefused as refusal:
        raise EvidenceRefused(refusal.reason, f"The {leaf.kind} is not proven to be in the log. {refusal}") from None
    return Record(data, leaf.kind)


def decoded(text: str, what: str) -> bytes:
    """The bytes of a base64 text. Raises EvidenceRefused bundle_malformed; `what` begins its sentence."""
    try:
        return unbase64(text)
    except ValueError:
        raise EvidenceRefused("bundle_malformed", f"{what} is not standard base64.") from None
