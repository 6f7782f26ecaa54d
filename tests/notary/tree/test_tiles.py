"""Trees as they grow in a database: whatever was rolled back or lost in a crash, they are those of the plain model."""

import shutil
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notary.ledger import history, schema
from notary.ledger.history import History
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf
from notary.tree import tiles
from notary.tree.merkle import check_consistency, leaf_hash
from notary.tree.tiles import Tree
from tests.support.naive_tree import Numbered, naive_consistency, naive_path, naive_root
from tests.support.properties import FEW

MANY = 65_800
"""More than one tile of the second level."""
COMMIT, ROLL_BACK, CRASH = "commit", "roll back", "crash"
BATCHES = st.lists(st.integers(1, 300), min_size=1, max_size=3)
STEPS = st.lists(st.tuples(st.sampled_from([COMMIT, COMMIT, ROLL_BACK, CRASH]), BATCHES), min_size=1, max_size=8)
_folders = count(1)


def leaf(number: int) -> bytes:
    return b"leaf %d" % number


ALL_LEAVES = Numbered(leaf, range(MANY))


def grown(size: int) -> Tree:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(tiles.TABLE)
    tiles.append(connection, [leaf_hash(leaf(number)) for number in range(size)])
    return Tree(connection)


@pytest.fixture(scope="module")
def large() -> Tree:
    return grown(MANY)


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    return connection


@settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_only_what_was_committed_grows_a_tree(tmp_path: Path, steps: list[tuple[str, list[int]]]) -> None:
    path = tmp_path / f"{next(_folders)}.sqlite3"
    connection = opened(path)
    connection.execute(tiles.TABLE)
    kept = 0
    for how, batches in steps:
        connection.execute("BEGIN IMMEDIATE")
        size = kept
        for batch in batches:
            tiles.append(connection, [leaf_hash(leaf(number)) for number in range(size, size + batch)])
            size += batch
        if how == CRASH:
            left = path.with_name(f"{next(_folders)}.sqlite3")
            for beside in ("", "-wal"):
                shutil.copy(f"{path}{beside}", f"{left}{beside}")
            connection.close()
            path, connection = left, opened(left)
        else:
            connection.execute("COMMIT" if how == COMMIT else "ROLLBACK")
        kept = size if how == COMMIT else kept
        tree = Tree(connection)
        assert (tree.size, tree.root()) == (kept, naive_root([leaf(number) for number in range(kept)]))
    connection.close()


@FEW
@given(data=st.data())
def test_proofs_of_a_large_tree_are_those_of_the_rfc(large: Tree, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, MANY) | st.integers(MANY - 300, MANY))
    old_size, index = data.draw(st.integers(1, size)), data.draw(st.integers(0, size - 1))
    leaves = ALL_LEAVES[:size]
    assert large.root(size) == naive_root(leaves)
    assert large.inclusion_proof(index, size) == naive_path(index, leaves)
    assert large.consistency_proof(old_size, size) == naive_consistency(old_size, leaves)


INTENT = tuple("x" for _ in INTENT_COLUMNS[:-1])


@FEW
@given(events=st.integers(0, 600), intents=st.integers(0, 600), more=st.integers(1, 300))
def test_entries_older_than_the_tree_are_its_first_leaves(events: int, intents: int, more: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.prepare(connection)
        connection.execute("DELETE FROM meta WHERE key = 'history'")
        connection.executemany(
            "INSERT INTO events (event_id, event_type, time, bytes) VALUES ('', '', 0, ?)",
            [(leaf(number),) for number in range(events)],
        )
        marks = ", ".join("?" * len(INTENT_COLUMNS))
        rows = [(f"intent_{number}", *INTENT[1:], b"context") for number in range(intents)]
        connection.executemany(f"INSERT INTO intents ({', '.join(INTENT_COLUMNS)}) VALUES ({marks})", rows)
        history.bring(connection)
        assert history.read(connection) == History(events, intents)
        leaves = [*(leaf(number) for number in range(events)), *(intent_leaf(row) for row in rows)]
        before = Tree(connection)
        assert (before.size, before.root()) == (len(leaves), naive_root(leaves))
        fresh = [b"fresh %d" % number for number in range(more)]
        tiles.append(connection, map(leaf_hash, fresh))
        after = Tree(connection)
        assert after.root() == naive_root([*leaves, *fresh])
        path = after.consistency_proof(before.size, after.size)
        check_consistency(before.size, before.root(), after.size, after.root(), path)
