"""Settling: rows of journal entries go to the tables that queries read, many units at a time.

An index page that each of a hundred units would write is written once. Functions of a connection inside a transaction;
`Unsettled` is the memory of what the journal holds, for the one process that writes it.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from notary.database import Database, DatabaseGone, OpenTransaction
from notary.ledger import kept_values, page_ring
from notary.ledger.head import Head, read_head, write_head
from notary.ledger.intents import INSERT_INTENT
from notary.ledger.leaves import leaves_of
from notary.ledger.page_ring import SLOTS, RingContent, RingEntry
from notary.ledger.writing import INSERT_EVENT, INSERT_RECEIPT
from notary.store.proofs import INSERT_PROOF
from notary.tree import tiles

SETTLED_AT = SLOTS // 8
"""Slots in use from which on entries are settled as soon as their answers are on their way. Calls that arrive meanwhile
wait for that. With half as many a call costs a twentieth more, since pages of indexes are written more often."""

R = TypeVar("R", bound=tuple[object, ...])
HAS_JOURNAL = "SELECT 1 FROM sqlite_master WHERE name = 'journal'"
_WAITS = "INSERT INTO unresolved (intent_id, seq) SELECT intent_id, seq FROM intents WHERE intent_id = ?"
_RESOLVE = "DELETE FROM unresolved WHERE intent_id = ?"
_SETTLED = "UPDATE meta SET value = ? WHERE key = 'settled'"


class Unsettled:
    """Entries of the journal that are not settled. Changes after a commit only."""

    def __init__(self, contents: RingContent) -> None:
        self.entries = [entry for entry in contents.entries if not entry.is_settled]
        self.number = contents.last
        """The number of the newest unit."""
        self.slot = contents.slot
        """Where the next entry goes."""
        self.used = SLOTS if contents.entries else 0  # the next unit settles first
        self.intents = {row[0] for entry in self.entries for row in entry.intents}

    def add(self, entry: RingEntry, pieces: int) -> None:
        """A unit is committed. `pieces` 0: its entry was too large for the journal, and settled at once."""
        self.number += 1
        self.slot = (self.slot + pieces) % SLOTS
        self.used += pieces
        if not entry.is_settled:
            self.entries.append(entry)
            self.intents.update([row[0] for row in entry.intents])

    def clear(self) -> None:
        """Everything is settled."""
        self.entries, self.used = [], 0
        self.intents.clear()


def settle(connection: OpenTransaction, entries: Sequence[RingEntry], number: int) -> None:
    """Move the rows of these entries, all that are not settled up to this unit, to their tables and into the tree.

    Raises DatabaseGone when the tree is not as they continue it.
    """
    connection.execute(_SETTLED, (str(number),))
    move(connection, entries, is_file=True)


def move(connection: OpenTransaction, entries: Sequence[RingEntry], *, is_file: bool) -> None:
    """The same without a word in the journal: for a database that has none, unless `is_file`."""
    _insert(connection, INSERT_PROOF, (row for entry in entries for row in entry.proofs))
    _insert(connection, INSERT_INTENT, (
        (*row, leaf) for entry in entries for row, leaf in _placed(entry.intents, entry.intent_leaves)
    ))  # fmt: skip
    _insert(connection, INSERT_EVENT, (
        (*row, leaf) for entry in entries for row, leaf in _placed(entry.events, entry.event_leaves)
    ))  # fmt: skip
    _insert(connection, INSERT_RECEIPT, (row for entry in entries for row in entry.receipts))
    opened = {row[0]: None for entry in entries for row in entry.intents}
    resolved = {intent_id: None for entry in entries for intent_id in entry.resolved}
    _insert(connection, _WAITS, ((intent_id,) for intent_id in opened if intent_id not in resolved))
    _insert(connection, _RESOLVE, ((intent_id,) for intent_id in resolved if intent_id not in opened))
    if (head := last_head(entries)) is not None:
        write_head(connection, head)
    kept = [row for entry in entries for row in entry.kept]
    if kept or any(entry.kept_ends for entry in entries):
        ends = [end for entry in entries for end in entry.kept_ends]
        kept_values.insert(connection, kept, ends, is_file=is_file)
    _grow(connection, entries)


def _placed(rows: Sequence[R], leaves: Sequence[int]) -> Iterable[tuple[R, int | None]]:
    """Each row with its place in the tree, None for those of an entry from before there was one."""
    return zip(rows, leaves, strict=True) if leaves else ((row, None) for row in rows)


def _grow(connection: OpenTransaction, entries: Sequence[RingEntry]) -> None:
    leaves = leaves_of(entry for entry in entries if entry.event_leaves or entry.intent_leaves)
    if not leaves:
        return
    size = tiles.size(connection)
    if [place for place, _ in leaves] != list(range(size, size + len(leaves))):
        raise DatabaseGone(f"the tree has {size} leaves, and the journal goes on at {leaves[0][0]}")
    tiles.append(connection, [hashed for _, hashed in leaves])


def _insert(connection: OpenTransaction, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
    if some := list(rows):
        connection.executemany(statement, some)


def settle_all(database: Database, unsettled: Unsettled) -> None:
    """Move all that the journal holds to its tables. Not flushed: a crash may undo it, and nothing is lost by that.

    Raises DatabaseGone.
    """
    if unsettled.entries:
        with database.unit(is_durable=False) as connection:
            settle(connection, unsettled.entries, unsettled.number)
        unsettled.clear()


def count_leaves(connection: OpenTransaction, entries: Sequence[RingEntry]) -> int:
    """How many leaves the tree has, with those of entries that are not settled. Raises DatabaseGone."""
    return tiles.size(connection) + sum(len(entry.event_leaves) + len(entry.intent_leaves) for entry in entries)


def last_head(entries: Sequence[RingEntry]) -> Head | None:
    """The end of the chain as the newest of these entries with an event has it."""
    return next((Head(*entry.head) for entry in reversed(entries) if entry.head is not None), None)


def unsettled(connection: OpenTransaction) -> list[RingEntry]:
    """Entries that are not in their tables, oldest first: for those who only read. Raises DatabaseGone."""
    if connection.execute(HAS_JOURNAL).fetchone() is None:
        return []  # a file of an earlier version
    return page_ring.read(connection).entries


def head_with(connection: OpenTransaction, entries: Sequence[RingEntry]) -> Head | None:
    """The end of the chain, given the entries that are not settled; None when it is gone."""
    kept = read_head(connection)
    return None if kept is None else last_head(entries) or kept
