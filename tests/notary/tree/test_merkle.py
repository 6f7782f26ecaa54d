"""Roots and proofs against the definitions of RFC 6962, and against proofs that were tampered with."""

import sqlite3
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notary.tree import tiles
from notary.tree.merkle import (
    EMPTY_ROOT,
    ProofRefused,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
)
from notary.tree.tiles import TilesDamaged, Tree
from tests.support.naive_tree import naive_consistency, naive_path, naive_root

LEAVES = [b"leaf %d" % number for number in range(70)]
BATCHES = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def tree_of(batches: Sequence[Sequence[bytes]]) -> Tree:
    """The tree that these are appended to, one batch after the other."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(tiles.TABLE)
    for batch in batches:
        tiles.append(connection, map(leaf_hash, batch))
    return Tree(connection)


@pytest.fixture(scope="module")
def tree() -> Tree:
    """All of LEAVES."""
    return tree_of([LEAVES])


@given(batches=BATCHES)
def test_a_tree_is_the_same_in_whatever_batches_it_grew(batches: list[int]) -> None:
    leaves = [b"%d" % number for number in range(sum(batches))]
    starts = [sum(batches[:at]) for at in range(len(batches))]
    tree = tree_of([leaves[start : start + count] for start, count in zip(starts, batches, strict=True)])
    assert (tree.size, tree.root()) == (len(leaves), naive_root(leaves))


@pytest.mark.parametrize("size", [255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537])
def test_a_tree_is_whole_where_its_tiles_end(size: int) -> None:
    leaves = [b"%d" % number for number in range(size)]
    tree = tree_of([leaves[: size - 3], leaves[size - 3 :]])
    assert (tree.size, tree.root()) == (size, naive_root(leaves))
    for index in (0, 255, size - 1):
        if index < size:
            check_inclusion(leaf_hash(leaves[index]), index, size, tree.inclusion_proof(index, size), tree.root())


def test_an_empty_tree_has_the_root_that_the_rfc_gives_it() -> None:
    assert (tree_of([]).size, tree_of([]).root()) == (0, EMPTY_ROOT)
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_every_inclusion_proof_is_that_of_the_rfc_and_holds(tree: Tree) -> None:
    for size in range(1, len(LEAVES) + 1):
        root = naive_root(LEAVES[:size])
        assert tree.root(size) == root
        for index in range(size):
            path = inclusion_proof(tree.node, index, size)
            assert path == naive_path(index, LEAVES[:size])
            check_inclusion(leaf_hash(LEAVES[index]), index, size, path, root)


def test_every_consistency_proof_is_that_of_the_rfc_and_holds(tree: Tree) -> None:
    for size in range(len(LEAVES) + 1):
        for old_size in range(size + 1):
            path = consistency_proof(tree.node, old_size, size)
            assert path == (naive_consistency(old_size, LEAVES[:size]) if old_size else [])
            check_consistency(old_size, tree.root(old_size), size, tree.root(size), path)


@given(data=st.data())
def test_a_proof_of_inclusion_holds_for_nothing_else(data: st.DataObject) -> None:
    tree = tree_of([LEAVES])
    size = data.draw(st.integers(2, len(LEAVES)))
    index = data.draw(st.integers(0, size - 1))
    leaf, root, path = leaf_hash(LEAVES[index]), tree.root(size), tree.inclusion_proof(index, size)
    other = (index + data.draw(st.integers(1, size - 1))) % size
    at = data.draw(st.integers(0, len(path) - 1))
    wrong = [
        (leaf_hash(LEAVES[other]), index, size, path, root),
        (leaf, other, size, path, root),
        (leaf, index, size, [*path, root], root),
        (leaf, index, size, path[:at] + path[at + 1 :], root),
        (leaf, index, size, [*path[:at], bytes(32), *path[at + 1 :]], root),
        (leaf, index, size, path, bytes(32)),
        (leaf, size, size, path, root),
        (leaf, -1, size, path, root),
    ]
    for case in wrong:
        with pytest.raises(ProofRefused):
            check_inclusion(*case)


def test_the_only_leaf_of_a_tree_has_one_place(tree: Tree) -> None:
    leaf = leaf_hash(LEAVES[0])
    check_inclusion(leaf, 0, 1, [], tree.root(1))
    for index in (1, -1):
        with pytest.raises(ProofRefused):
            check_inclusion(leaf, index, 1, [], tree.root(1))


@given(data=st.data())
def test_no_proof_of_consistency_hides_a_history_that_was_changed(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, len(LEAVES)))
    old_size = data.draw(st.integers(1, size - 1))
    changed = data.draw(st.integers(0, old_size - 1))
    forged = [*LEAVES[:changed], b"another", *LEAVES[changed + 1 : size]]
    old_root = naive_root(LEAVES[:old_size])
    tree = tree_of([forged])
    path = consistency_proof(tree.node, old_size, size)
    honest = naive_consistency(old_size, LEAVES[:size])
    for offered in (path, honest, honest[:-1], [*honest, bytes(32)], []):
        with pytest.raises(ProofRefused):
            check_consistency(old_size, old_root, size, tree.root(), offered)


def test_a_smaller_tree_is_consistent_with_no_larger_one(tree: Tree) -> None:
    with pytest.raises(ProofRefused, match="smaller than it was"):
        check_consistency(5, tree.root(5), 4, tree.root(4), [])
    with pytest.raises(ProofRefused, match="two roots"):
        check_consistency(5, tree.root(5), 5, tree.root(4), [])


def test_a_leaf_beyond_the_tree_has_no_proof(tree: Tree) -> None:
    for index, size in ((3, 3), (-1, 3)):
        with pytest.raises(ValueError, match="no leaf"):
            inclusion_proof(tree.node, index, size)
    with pytest.raises(ValueError, match="no earlier size"):
        consistency_proof(tree.node, 4, 3)


@pytest.mark.parametrize("damage", [
    "DELETE FROM tiles WHERE level = 0 AND number = 0",
    "UPDATE tiles SET hashes = substr(hashes, 1, 64) WHERE level = 0 AND number = 0",
    "UPDATE tiles SET hashes = substr(hashes, 1, 33) WHERE level = 0 AND number = 1",
    "UPDATE tiles SET hashes = x'' WHERE level = 0 AND number = 1",
    "UPDATE tiles SET number = number - 2 WHERE level = 0",
    "UPDATE tiles SET hashes = CAST(hashes || x'00' AS BLOB) WHERE level = 0 AND number = 1",
    "UPDATE tiles SET hashes = zeroblob(257 * 32) WHERE level = 0 AND number = 1",
])  # fmt: skip
def test_tiles_that_make_no_tree_are_damage_and_no_answer(damage: str) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(tiles.TABLE)
    tiles.append(connection, [bytes(32)] * 300)
    connection.execute(damage)
    with pytest.raises(TilesDamaged):
        Tree(connection).inclusion_proof(7, 300)


@pytest.mark.parametrize("hashes", [1, 2, 4, 5])
def test_a_subtree_that_a_tile_has_not_all_hashes_of_is_damage(hashes: int) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(tiles.TABLE)
    tiles.append(connection, [bytes(32)] * 300)
    connection.execute("UPDATE tiles SET hashes = substr(hashes, 1, ?) WHERE level = 0 AND number = 0", (32 * hashes,))
    tree = Tree(connection)
    for height in range(8):
        for index in range(8):
            if (index + 1) << height <= hashes:
                tree.node(height, index)
            else:
                with pytest.raises(TilesDamaged):
                    tree.node(height, index)
