"""Proofs of RFC 6962 trees, checked: that an entry is in a tree, and that a tree continues an earlier one. Pure.

Algorithms of RFC 9162 §2.1.3.2 and §2.1.4.2. Guarantees that a proof which is too long or too short is refused, also
where the hashes at its beginning would lead to the root.
"""

from collections.abc import Sequence
from hashlib import sha256

from gateway_client.errors import EvidenceRefused

EMPTY_ROOT = sha256(b"").digest()
"""Root of a tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    """Hash of a leaf (RFC 6962 §2.1)."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of the node above two others (RFC 6962 §2.1)."""
    return sha256(b"\1" + left + right).digest()


def check_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Raises EvidenceRefused unless the leaf of this hash is number `index`, from 0, of the tree.

    Reasons: leaf_index, proof_length, root.
    """
    if not 0 <= index < size:
        raise EvidenceRefused("leaf_index", f"Index {index} is not in a tree of {size} leaves.")
    number, last, reached = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise EvidenceRefused("proof_length", "The inclusion proof is too long.")
        is_right = bool(number & 1) or number == last
        reached = node_hash(sibling, reached) if is_right else node_hash(reached, sibling)
        number, last = _above(number, last)
    if last:
        raise EvidenceRefused("proof_length", "The inclusion proof is too short.")
    if reached != root:
        raise EvidenceRefused("root", f"It is not at index {index} of the tree that the checkpoint signs.")


def check_consistency(old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> None:
    """Raises EvidenceRefused unless the tree of `size` leaves begins with that of `old_size` leaves.

    Reasons: size, proof_length, old_root, root.
    """
    if not 0 <= old_size <= size:
        raise EvidenceRefused("size", f"A tree of {size} leaves does not continue one of {old_size}.")
    if old_size in (0, size):
        if proof:
            raise EvidenceRefused("proof_length", "The consistency proof is too long.")
        if old_root != (root if old_size else EMPTY_ROOT):
            raise EvidenceRefused("old_root", f"There are two roots of the tree of {old_size} leaves.")
        return
    # The root of a complete subtree is not repeated in the proof.
    hashes = list(proof) if old_size & (old_size - 1) else [old_root, *proof]
    if not hashes:
        raise EvidenceRefused("proof_length", "The consistency proof is too short.")
    number, last = old_size - 1, size - 1
    while number & 1:
        number, last = number >> 1, last >> 1
    old_reached = reached = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            raise EvidenceRefused("proof_length", "The consistency proof is too long.")
        if number & 1 or number == last:
            old_reached, reached = node_hash(sibling, old_reached), node_hash(sibling, reached)
        else:
            reached = node_hash(reached, sibling)
        number, last = _above(number, last)
    if last:
        raise EvidenceRefused("proof_length", "The consistency proof is too short.")
    if old_reached != old_root:
        raise EvidenceRefused("old_root", f"The proof leads to another root of the first {old_size} leaves.")
    if reached != root:
        raise EvidenceRefused("root", f"The proof leads to another root of the {size} leaves.")


def _above(number: int, last: int) -> tuple[int, int]:
    """A node and the last one of its level, a level up; levels on which the node has no sibling are passed over."""
    if not number & 1 and number == last:
        while number and not number & 1:
            number, last = number >> 1, last >> 1
    return number >> 1, last >> 1
