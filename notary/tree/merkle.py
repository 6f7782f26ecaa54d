"""Hashes and proofs of RFC 6962 §2.1, over any store of complete subtrees. Pure; knows no database and no key.

A tree is given by a function that returns the hash of a complete subtree: `node(height, index)` covers the 2^height
leaves from index * 2^height on. Everything else, roots and proofs of any size, is made of such nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
"""Root of a tree without leaves."""

Nodes = Callable[[int, int], bytes]


class ProofRefused(ValueError):
    """A proof that does not prove what it claims to. The text says why."""


def leaf_hash(data: bytes) -> bytes:
    """Hash of a leaf (RFC 6962 §2.1)."""
    return sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of the node above two others (RFC 6962 §2.1)."""
    return sha256(b"\1" + left + right).digest()


def folded(hashes: bytes) -> list[bytes]:
    """The complete subtrees above these hashes, which stand one after the other: by height, from these on."""
    levels = [hashes]
    while (pairs := len(levels[-1]) // (2 * HASH_BYTES)) > 0:
        below = levels[-1]
        levels.append(b"".join([
            sha256(b"\1" + below[at : at + 2 * HASH_BYTES]).digest()
            for at in range(0, pairs * 2 * HASH_BYTES, 2 * HASH_BYTES)
        ]))  # fmt: skip
    return levels


def root(node: Nodes, size: int) -> bytes:
    """Root of the tree of the first `size` leaves."""
    return _range_root(node, 0, size) if size else EMPTY_ROOT


def inclusion_proof(node: Nodes, index: int, size: int) -> list[bytes]:
    """Audit path of a leaf in the tree of the first `size` leaves, from the leaf up (RFC 6962 §2.1.1).

    Raises ValueError unless 0 <= index < size.
    """
    if not 0 <= index < size:
        raise ValueError("no leaf of this tree")
    path, start, end = [], 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_root(node, middle, end))
            end = middle
        else:
            path.append(_range_root(node, start, middle))
            start = middle
    return path[::-1]


def consistency_proof(node: Nodes, old_size: int, size: int) -> list[bytes]:
    """Proof that the tree of `size` leaves begins with that of `old_size` leaves (RFC 6962 §2.1.2).

    Raises ValueError unless 0 <= old_size <= size.
    """
    if not 0 <= old_size <= size:
        raise ValueError("no earlier size of this tree")
    if old_size in (0, size):
        return []
    path, start, end, is_whole = [], 0, size, True
    while old_size != end:
        middle = start + _split(end - start)
        if old_size <= middle:
            path.append(_range_root(node, middle, end))
            end = middle
        else:
            path.append(_range_root(node, start, middle))
            start, is_whole = middle, False
    if not is_whole:
        path.append(_range_root(node, start, end))
    return path[::-1]


def check_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], expected: bytes) -> None:
    """Raises ProofRefused unless the path leads from the leaf's hash to the root (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size:
        raise ProofRefused("the leaf's index is not below the size of the tree")
    if _climbed(leaf, index, size - 1, path)[0] != expected:
        raise ProofRefused("the proof leads to another root")


def check_consistency(
    old_size: int, old_root: bytes, size: int, expected: bytes, path: Sequence[bytes]
) -> None:  # fmt: skip
    """Raises ProofRefused unless the tree of `size` leaves begins with that of `old_size` (RFC 9162 §2.1.4.2)."""
    if not 0 <= old_size <= size:
        raise ProofRefused("the tree is smaller than it was")
    if old_size in (0, size):
        if path:
            raise ProofRefused("the proof is too long")
        if old_root != (expected if old_size else EMPTY_ROOT):
            raise ProofRefused("trees of one size have two roots")
        return
    rest = list(path) if old_size & (old_size - 1) else [old_root, *path]
    if not rest:
        raise ProofRefused("the proof is too short")
    first, last = old_size - 1, size - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    reached, old_reached = _climbed(rest[0], first, last, rest[1:])
    if old_reached != old_root:
        raise ProofRefused("the proof leads to another root of the earlier tree")
    if reached != expected:
        raise ProofRefused("the proof leads to another root")


def _climbed(start: bytes, first: int, last: int, path: Iterable[bytes]) -> tuple[bytes, bytes]:
    """Where a path leads from node `first` of a level whose last one is `last`: the root over that whole level, and the
    root over its nodes up to `first`. Raises ProofRefused for a path of another length."""
    over_all = over_first = start
    for sibling in path:
        if last == 0:
            raise ProofRefused("the proof is too long")
        if first & 1 or first == last:
            over_all, over_first = node_hash(sibling, over_all), node_hash(sibling, over_first)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            over_all = node_hash(over_all, sibling)
        first, last = first >> 1, last >> 1
    if last:
        raise ProofRefused("the proof is too short")
    return over_all, over_first


def _split(count: int) -> int:
    """The largest power of two below a count of two or more."""
    return 1 << ((count - 1).bit_length() - 1)


def _range_root(node: Nodes, start: int, end: int) -> bytes:
    """Root over the leaves from `start` to `end`, where `start` is a multiple of every subtree's width."""
    peaks = list(_peaks(node, start, end))
    range_root = peaks.pop()
    while peaks:
        range_root = node_hash(peaks.pop(), range_root)
    return range_root


def _peaks(node: Nodes, start: int, end: int) -> Iterator[bytes]:
    """Complete subtrees that cover a range, the largest first."""
    while start < end:
        height = (end - start).bit_length() - 1
        yield node(height, start >> height)
        start += 1 << height
