"""Proofs of trees: those that the plain definition of RFC 6962 makes are taken, and no other."""

from typing import Any

import pytest
from gateway_client import EvidenceRefused
from gateway_client.evidence.tree import EMPTY_ROOT, check_consistency, check_inclusion, leaf_hash
from hypothesis import given
from hypothesis import strategies as st

from tests.support.naive_tree import naive_consistency, naive_path, naive_root

LEAVES = [str(number).encode() for number in range(35)]
ROOTS = [naive_root(LEAVES[:size]) for size in range(len(LEAVES) + 1)]


def test_every_leaf_of_every_small_tree_is_proven() -> None:
    for size in range(1, 18):
        for index in range(size):
            path = naive_path(index, LEAVES[:size])
            check_inclusion(leaf_hash(LEAVES[index]), index, size, path, ROOTS[size])


def test_every_small_tree_continues_every_earlier_one() -> None:
    for size in range(18):
        for old_size in range(size + 1):
            proof = naive_consistency(old_size, LEAVES[:size]) if 0 < old_size < size else []
            check_consistency(old_size, ROOTS[old_size], size, ROOTS[size], proof)
    assert ROOTS[0] == EMPTY_ROOT


def refused(check: Any, *arguments: Any) -> str:
    with pytest.raises(EvidenceRefused) as raised:
        check(*arguments)
    return raised.value.reason


@given(st.integers(1, 34), st.data())
def test_no_other_proof_of_a_leaf_is_taken(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    path, leaf = naive_path(index, LEAVES[:size]), leaf_hash(LEAVES[index])
    other = data.draw(st.integers(0, size).filter(lambda one: one != index))
    assert refused(check_inclusion, leaf, other, size, path, ROOTS[size])
    assert refused(check_inclusion, leaf_hash(b"other"), index, size, path, ROOTS[size]) == "root"
    assert refused(check_inclusion, leaf, index, size, [*path, leaf], ROOTS[size]) == "proof_length"
    assert refused(check_inclusion, leaf, -1, size, path, ROOTS[size]) == "leaf_index"
    if path:
        assert refused(check_inclusion, leaf, index, size, path[:-1], ROOTS[size]) == "proof_length"
        place = data.draw(st.integers(0, len(path) - 1))
        bent = [*path[:place], leaf_hash(path[place]), *path[place + 1 :]]
        assert refused(check_inclusion, leaf, index, size, bent, ROOTS[size]) == "root"


@given(st.integers(2, 34), st.data())
def test_no_other_proof_of_a_continuation_is_taken(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, size - 1))
    proof, strange = naive_consistency(old, LEAVES[:size]), leaf_hash(b"other")
    assert refused(check_consistency, old, strange, size, ROOTS[size], proof) in {"old_root", "root"}
    assert refused(check_consistency, old, ROOTS[old], size, strange, proof) == "root"
    assert refused(check_consistency, old, ROOTS[old], size, ROOTS[size], proof[:-1]) == "proof_length"
    assert refused(check_consistency, old, ROOTS[old], size, ROOTS[size], [*proof, strange]) == "proof_length"
    assert refused(check_consistency, old, ROOTS[old], size, ROOTS[size], []) == "proof_length"
    place = data.draw(st.integers(0, len(proof) - 1))
    bent = [*proof[:place], leaf_hash(proof[place]), *proof[place + 1 :]]
    assert refused(check_consistency, old, ROOTS[old], size, ROOTS[size], bent) in {"old_root", "root"}


def test_a_tree_that_shrank_or_has_two_roots_is_refused() -> None:
    assert refused(check_consistency, 5, ROOTS[5], 4, ROOTS[4], []) == "size"
    assert refused(check_consistency, 4, ROOTS[4], 4, ROOTS[5], []) == "old_root"
    assert refused(check_consistency, 4, ROOTS[4], 4, ROOTS[4], [ROOTS[1]]) == "proof_length"
    assert refused(check_consistency, 0, ROOTS[1], 4, ROOTS[4], []) == "old_root"
