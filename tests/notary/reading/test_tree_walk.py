"""A walk along the tree of a ledger that was changed by an attacker who can write its file."""

import shutil
import sqlite3
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.operations.intents import ListUnresolved
from ipc.texts.canonical import sha256_hex
from notary.ledger.head import Head, write_head
from notary.ledger.leaves import INTENT_COLUMNS
from notary.reading.tree_walk import CHUNK
from tests.notary.reading.tampered import EVENTS, INTENTS, Tampered
from tests.notary.reading.test_long_walks import grown
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_open, record_call

WITH_RECEIPT = 4
"""An event of a call."""


def rewritten(file: Tampered) -> None:
    """Change the text of the fourth event and compute every link and the head again."""
    with closing(sqlite3.connect(file.path)) as connection, connection:
        link: str | None = None
        for seq in range(1, EVENTS + 1):
            fields = msgspec.json.decode(file.bytes[seq])
            fields["prev_hash"] = link
            if seq == WITH_RECEIPT:
                fields["runtime"] = {"duration_ms": 1}
            stored = msgspec.json.encode(fields, order="sorted")
            connection.execute("UPDATE events SET bytes = ? WHERE seq = ?", (stored, seq))
            link = sha256_hex(stored)
        write_head(connection, Head(EVENTS, link))


def test_a_chain_that_was_computed_anew_is_not_the_one_in_the_tree(ledger_file: Tampered) -> None:
    rewritten(ledger_file)
    ledger_file.broken_at(WITH_RECEIPT, "its bytes are not those of leaf")


def test_a_chain_that_was_cut_with_its_head_is_not_all_of_the_tree(ledger_file: Tampered) -> None:
    with closing(sqlite3.connect(ledger_file.path)) as connection, connection:
        connection.execute("DELETE FROM events WHERE seq > 10")
        write_head(connection, Head(10, sha256_hex(ledger_file.bytes[10])))
    report = ledger_file.verify()
    assert report.reason == f"the tree has {EVENTS + INTENTS} leaves, and events and intents are {10 + INTENTS}"
    assert (report.intact, report.broken_at, report.total_events) == (False, "head", 10)


@pytest.mark.parametrize("change", [
    "UPDATE intents SET context = x'c0' WHERE seq = 3", "UPDATE intents SET context = NULL WHERE seq = 3",
    "UPDATE intents SET approval_id = 'appr_1' WHERE seq = 3", "UPDATE intents SET grant_jws = NULL WHERE seq = 3",
    "UPDATE intents SET leaf = NULL WHERE seq = 3", "UPDATE intents SET leaf = leaf + 1 WHERE seq = 3",
    "UPDATE events SET leaf = NULL WHERE seq = 3", "UPDATE events SET leaf = leaf + 1 WHERE seq = 3",
    "UPDATE intents SET leaf = 17 - leaf",
    "DELETE FROM intents WHERE seq = 6", "DELETE FROM intents WHERE seq = 1",
    "DELETE FROM meta WHERE key = 'history'",
    "DELETE FROM tiles", "UPDATE tiles SET number = 1", "INSERT INTO tiles VALUES (1, 0, zeroblob(32))",
    "INSERT INTO tiles VALUES (0, 1, zeroblob(32))", "UPDATE tiles SET hashes = zeroblob(32 * 18)",
    "UPDATE tiles SET hashes = substr(hashes, 1, 32 * 17)",
])  # fmt: skip
def test_intents_places_and_tiles_can_not_be_changed_alone(ledger_file: Tampered, change: str) -> None:
    assert ledger_file.verify().intact
    ledger_file.execute(change)
    assert not ledger_file.verify().intact


def intent_ids(file: Tampered) -> list[str]:
    with closing(sqlite3.connect(file.path)) as connection:
        return [row[0] for row in connection.execute("SELECT intent_id FROM intents ORDER BY seq")]


def broken_at_intent(file: Tampered, seq: int, reason: str) -> None:
    """The walk stops at that intent, of those that are there."""
    name = dict(enumerate(intent_ids(file), 1))[seq]
    report = file.verify()
    assert (report.intact, report.broken_at) == (False, name)
    assert (report.total_events, report.size, report.root) == (EVENTS, 0, None)
    assert report.reason is not None
    assert reason in report.reason


def test_the_intent_after_one_that_is_missing_is_named(ledger_file: Tampered) -> None:
    ledger_file.execute("DELETE FROM intents WHERE seq = 3")
    broken_at_intent(ledger_file, 3, "intent number 3 is missing before it")


def test_the_first_of_two_swapped_intents_is_named(ledger_file: Tampered) -> None:
    with closing(sqlite3.connect(ledger_file.path)) as connection:
        third, fourth = (row[0] for row in connection.execute("SELECT leaf FROM intents WHERE seq IN (3, 4)"))
    ledger_file.execute("UPDATE intents SET leaf = ? - leaf WHERE seq IN (3, 4)", third + fourth)
    broken_at_intent(ledger_file, 3, f"its bytes are not those of leaf {fourth}")


def test_an_intent_can_not_be_written_over_with_the_one_before_it(ledger_file: Tampered) -> None:
    columns = ", ".join((*INTENT_COLUMNS, "leaf"))
    ledger_file.execute("DROP INDEX intents_by_id")
    ledger_file.execute(f"UPDATE intents SET ({columns}) = (SELECT {columns} FROM intents WHERE seq = 2) WHERE seq = 3")
    broken_at_intent(ledger_file, 3, "it has no place in the tree after that of the one before it")


@pytest.mark.parametrize("history", ["[11,0]", "[10,1]"])
def test_no_more_is_from_before_there_was_a_tree_than_there_is(tmp_path: Path, history: str) -> None:
    grown(tmp_path / "ledger.sqlite3", 10)
    file = Tampered(tmp_path / "ledger.sqlite3")
    assert file.verify().intact
    file.execute("UPDATE meta SET value = ? WHERE key = 'history'", history)
    assert file.verify().reason == "the ledger says that more is from before there was a tree than there is"


def test_a_checkpoint_of_another_tree_of_its_size_is_found_though_its_signature_is_not_looked_at(
    ledger_file: Tampered,
) -> None:
    with closing(sqlite3.connect(ledger_file.path)) as connection, connection:
        size, note = connection.execute("SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1").fetchone()
        lines = note.split("\n")
        lines[2] = b64encode(bytes(32)).decode()
        connection.execute("UPDATE checkpoints SET note = ? WHERE size = ?", ("\n".join(lines), size))
    reason = ledger_file.verify().reason or ""
    assert reason.startswith("the tree does not continue the checkpoint of ")
    assert reason.endswith(f", size {size}")


LEVELS: dict[str, Callable[[sqlite3.Connection], object]] = {
    "a full tile": lambda file: file.execute("UPDATE tiles SET hashes = zeroblob(8192) WHERE level = 1 AND number = 0"),
    "its hash": lambda file: file.execute("UPDATE tiles SET hashes = zeroblob(32) WHERE level = 2"),
    "a level": lambda file: file.execute("DELETE FROM tiles WHERE level = 2"),
}


@pytest.mark.large
@pytest.mark.parametrize("damage", LEVELS)
def test_the_upper_levels_are_looked_at_too(long_ledger: Path, tmp_path: Path, damage: str) -> None:
    file = Tampered(Path(shutil.copy(long_ledger, tmp_path)))
    with closing(sqlite3.connect(file.path)) as connection, connection:
        LEVELS[damage](connection)
    assert not file.verify().intact


@pytest.mark.parametrize("number", [0, 1])
def test_a_full_tile_is_held_against_its_own_hash_before_any_tile_above_it_is_full(tmp_path: Path, number: int) -> None:
    grown(tmp_path / "ledger.sqlite3", 600)
    file = Tampered(tmp_path / "ledger.sqlite3")
    assert file.verify().intact
    with closing(sqlite3.connect(file.path)) as connection, connection:
        (hashes,) = connection.execute("SELECT hashes FROM tiles WHERE level = 1").fetchone()
        assert len(hashes) == 2 * 32
        spoilt = hashes[: 32 * number] + bytes(32) + hashes[32 * (number + 1) :]
        connection.execute("UPDATE tiles SET hashes = ? WHERE level = 1", (spoilt,))
    report = file.verify()
    assert not report.intact
    assert report.reason == f"tile {number} of level 0 of the tree is not below its own hash"


def test_intents_are_walked_on_where_the_step_before_ended(notary: Running) -> None:
    for _ in range(CHUNK + 2):
        record_call(notary.front)
    assert notary.front.ask(ListUnresolved(9)) == []  # which has all of them brought to their table
    report = walk_of(notary)
    assert (report.intact, report.size) == (True, 2 * (CHUNK + 2)), report.reason


def test_intents_that_no_event_ends_are_walked_to_the_last_one(notary: Running) -> None:
    count = CHUNK + 1
    for _ in range(count):
        notary.front.begin(make_open())
    notary.front.ask(ListUnresolved(9))
    walk = walk_of(notary)
    assert (walk.intact, walk.events_checked, walk.size) == (True, 0, count), walk.reason
