"""Settling: what the journal holds is known, comes to its tables, and only intents without an end wait."""

import sqlite3

import pytest

from notary.database import DatabaseGone
from notary.ledger import history
from notary.ledger.head import Head, read_head
from notary.ledger.page_ring import SLOTS, EventRow, IntentRow, RingContent, RingEntry
from notary.ledger.settling import Unsettled, count_leaves, last_head, settle
from notary.tree import tiles


def intent(number: int) -> IntentRow:
    return (f"intent_{number}", "trc", "act", "who", "when", "grant", "module", "plan", None, "jws", b"context")


def event(number: int) -> EventRow:
    return (number, f"evt_{number}", "ActionCall", 0, None, None, None, None, None, b"event %d" % number)


def waiting(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT intent_id FROM unresolved ORDER BY intent_id")]


def test_only_units_with_rows_wait_in_a_read_only_journal() -> None:
    entries = [RingEntry(proofs=[(1, "p", 9.5)], intents=[intent(1)]), RingEntry(), RingEntry(resolved=["intent_1"])]
    known = Unsettled(RingContent(entries, 3, 6, 17, None))
    assert known.entries == [entries[0], entries[2]]
    assert (known.number, known.slot, known.used) == (6, 17, SLOTS), "which has the next unit settle first"
    assert known.intents == {"intent_1"}
    assert Unsettled(RingContent([], 3, 3, 17, None)).used == 0


def test_a_unit_that_is_committed_is_known_until_everything_is_settled() -> None:
    known = Unsettled(RingContent([], 3, 3, SLOTS - 2, None))
    entry = RingEntry(proofs=[(1, "p", 9.5)], intents=[intent(1)])
    known.add(entry, 3)
    known.add(RingEntry(), 1)
    assert (known.number, known.slot, known.used, known.entries) == (5, 2, 4, [entry])
    assert known.intents == {"intent_1"}
    known.clear()
    assert (known.number, known.slot, known.used, known.entries) == (5, 2, 0, [])
    assert known.intents == set()


def test_an_intent_waits_from_its_unit_to_that_of_its_end(connection: sqlite3.Connection) -> None:
    settle(connection, [RingEntry(intents=[intent(1), intent(2)], intent_leaves=[0, 1])], 1)
    assert waiting(connection) == ["intent_1", "intent_2"]
    begun_and_ended = RingEntry(intents=[intent(3), intent(4)], intent_leaves=[2, 3], resolved=["intent_1", "intent_3"])
    settle(connection, [begun_and_ended], 2)
    assert waiting(connection) == ["intent_2", "intent_4"]
    settle(connection, [RingEntry(resolved=["intent_2"]), RingEntry(resolved=["intent_4"])], 4)
    assert waiting(connection) == []
    assert connection.execute("SELECT value FROM meta WHERE key = 'settled'").fetchone() == ("4",)


def test_settled_entries_are_in_the_tree_and_at_the_end_of_the_chain(connection: sqlite3.Connection) -> None:
    entries = [
        RingEntry(events=[event(1)], event_leaves=[0], intents=[intent(1)], intent_leaves=[1], head=(1, "sha256:1")),
        RingEntry(events=[event(2)], event_leaves=[2], head=(2, "sha256:2")), RingEntry(resolved=["intent_1"]),
    ]  # fmt: skip
    assert (last_head(entries), count_leaves(connection, entries)) == (Head(2, "sha256:2"), 3)
    settle(connection, entries, 3)
    assert (read_head(connection), tiles.size(connection)) == (Head(2, "sha256:2"), 3)
    assert connection.execute("SELECT leaf FROM events ORDER BY seq").fetchall() == [(0,), (2,)]
    assert connection.execute("SELECT leaf FROM intents").fetchall() == [(1,)]
    settle(connection, [RingEntry(resolved=["intent_9"])], 4)
    assert (read_head(connection), tiles.size(connection)) == (Head(2, "sha256:2"), 3)
    assert last_head([]) is None


@pytest.mark.parametrize("places", [[1], [3]])
def test_a_unit_that_does_not_go_on_where_the_tree_ends_is_refused(
    connection: sqlite3.Connection, places: list[int]
) -> None:
    settle(connection, [RingEntry(events=[event(1), event(2)], event_leaves=[0, 1], head=(2, "x"))], 1)
    with pytest.raises(DatabaseGone, match="the tree has 2 leaves"):
        settle(connection, [RingEntry(events=[event(3)], event_leaves=places, head=(3, "y"))], 2)


def test_an_entry_older_than_the_tree_has_no_places(connection: sqlite3.Connection) -> None:
    settle(connection, [RingEntry(events=[event(1)], intents=[intent(1)], head=(1, "x"))], 1)
    assert tiles.size(connection) == 0
    assert connection.execute("SELECT leaf FROM events").fetchall() == [(None,)]
    only_intents = RingEntry(intents=[intent(2)], intent_leaves=[0])
    settle(connection, [only_intents], 2)
    assert tiles.size(connection) == 1


def test_values_that_a_changed_byte_has_made_another_kind_are_damage_and_no_fault(
    connection: sqlite3.Connection,
) -> None:
    connection.execute("DROP TABLE meta")
    connection.execute("CREATE TABLE meta (key, value)")  # as the file has it then: no constraint held this back
    connection.execute("INSERT INTO meta VALUES ('head', NULL), ('history', NULL)")
    connection.execute("DROP TABLE tiles")
    connection.execute("CREATE TABLE tiles (level, number, hashes)")
    connection.execute("INSERT INTO tiles VALUES (0, 0, NULL)")
    assert read_head(connection) is None
    with pytest.raises(DatabaseGone, match="where its tree begins"):
        history.read(connection)
    with pytest.raises(DatabaseGone, match="is not a tile"):
        tiles.size(connection)
