"""The tree of RFC 6962 as its text defines it, slow and plain: what the tests of the real one compare with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import overload

LEAST_KEPT = 16


@dataclass(frozen=True)
class Numbered(Sequence[bytes]):
    """Leaves that follow from their numbers: roots of their parts are kept, as far as they are worth it."""

    leaf: Callable[[int], bytes]
    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> "Numbered": ...
    def __getitem__(self, at: int | slice) -> "bytes | Numbered":
        return Numbered(self.leaf, self.numbers[at]) if isinstance(at, slice) else self.leaf(self.numbers[at])


def naive_root(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash of these leaves (RFC 6962 §2.1)."""
    return _kept_root(leaves) if isinstance(leaves, Numbered) and len(leaves) >= LEAST_KEPT else _root(leaves)


@cache
def _kept_root(leaves: Numbered) -> bytes:
    return _root(leaves)


def _root(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\1" + naive_root(leaves[:split]) + naive_root(leaves[split:])).digest()


def naive_path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The audit path of a leaf (RFC 6962 §2.1.1)."""
    if len(leaves) == 1:
        return []
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = leaves[:split], leaves[split:]
    if index < split:
        return [*naive_path(index, left), naive_root(right)]
    return [*naive_path(index - split, right), naive_root(left)]


def naive_consistency(old_size: int, leaves: Sequence[bytes], *, is_whole: bool = True) -> list[bytes]:
    """The consistency proof for the first `old_size` leaves (RFC 6962 §2.1.2, SUBPROOF)."""
    if old_size == len(leaves):
        return [] if is_whole else [naive_root(leaves)]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = leaves[:split], leaves[split:]
    if old_size <= split:
        return [*naive_consistency(old_size, left, is_whole=is_whole), naive_root(right)]
    return [*naive_consistency(old_size - split, right, is_whole=False), naive_root(left)]
