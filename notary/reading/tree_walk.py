"""The tree walker: is every event and every intent the leaf that the tiles have in its place, and are the tiles a tree?

Walks beside the walk along the chain (notary/reading/verify.py), in steps, with constant memory. Each event and each
intent is compared with the hash in its place; places only rise, and there are as many leaves as rows: so nothing is
there twice, and nothing is missing. Every full tile is compared with its hash one level above.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from notary.ledger import history
from notary.ledger.history import History
from notary.ledger.journal import Entry
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf, leaves_of
from notary.reading.queries import newest_note
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted
from notary.tree.merkle import HASH_BYTES, leaf_hash
from notary.tree.tiles import TILE_BITS, TILE_BYTES, TILE_HASHES, Tree, tile_root

CHUNK: Final = 256
_LEAF: Final = 10
"""Where a row of an event has its place; the bytes stand before it."""
_INTENTS: Final = f"SELECT seq, {', '.join(INTENT_COLUMNS)}, leaf FROM intents WHERE seq > ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608
_LEVELS: Final = "SELECT level, count(*), max(number), sum(length(hashes)) FROM tiles GROUP BY level ORDER BY level"


class Misplaced(Exception):
    """A leaf or a tile that does not fit. `name` is the id of the event or intent, None for a tile."""

    def __init__(self, name: str | None, seq: int | None, reason: str) -> None:
        super().__init__(reason)
        self.name, self.seq, self.reason = name, seq, reason


class Proven(NamedTuple):
    """The tree that was found whole: size, root, and the newest checkpoint, which it continues."""

    size: int
    root: bytes | None
    note: str | None


class TreeWalk:
    """Where a walk along one tree has come to."""

    def __init__(self) -> None:
        self.has_more = True
        """Intents or tiles are left that were there at the last step."""
        self.intents = 0
        self._events = 0
        self._event_place = self._intent_place = -1
        self._intent_seq = 0
        self._full_tile = 0

    def step(self, connection: sqlite3.Connection, rows: Iterable[Sequence[Any]]) -> None:
        """Check these events, the next intents and the next tiles, in one transaction. Raises Misplaced, TilesDamaged.

        Rows are those of EVENT_COLUMNS.
        """
        look = _Look(connection)
        for row in rows:
            self._check_event(look, row)
        found = connection.execute(_INTENTS, (self._intent_seq,)).fetchall()
        for row in found:
            self._check_intent(look, row)
        until = min(self._full_tile + 2 + len(found) // TILE_HASHES, look.tree.size // TILE_HASHES)
        for number in range(self._full_tile, until):
            look.check_full(0, number)
        self._full_tile = until
        self.has_more = len(found) == CHUNK or until < look.tree.size // TILE_HASHES

    def end(self, connection: sqlite3.Connection, entries: Sequence[Entry]) -> Proven:
        """Check that leaves and rows are as many, that the entries go on where the tree ends, the upper levels, and the
        newest checkpoint; in the transaction of the last step. Raises Misplaced, TilesDamaged."""
        look = _Look(connection)
        size = look.tree.size
        if self._events + self.intents != size:
            raise Misplaced(None, None, f"the tree has {size} leaves, and events and intents are "
                                        f"{self._events + self.intents}")  # fmt: skip
        places = [place for place, _ in leaves_of(entries)]
        if places != list(range(size, size + len(places))):
            raise Misplaced(None, None, f"the journal does not go on at leaf {size}, where the tree ends")
        look.check_levels()
        return Proven(size, look.tree.root(), look.check_checkpoint())

    def _check_event(self, look: "_Look", row: Sequence[Any]) -> None:
        seq, event_id, place = row[0], str(row[1]), row[_LEAF]
        if place is None and seq <= look.history.events:
            place = seq - 1
        self._event_place = look.check(place, self._event_place, row[_LEAF - 1], event_id, seq)
        self._events += 1

    def _check_intent(self, look: "_Look", row: Sequence[Any]) -> None:
        seq, place, intent_id = row[0], row[-1], str(row[1])
        if place is None and seq <= look.history.intents:
            place = look.history.events + seq - 1
        try:
            leaf = intent_leaf(row[1:-1])
        except (ValueError, TypeError):
            raise Misplaced(intent_id, None, "its columns are not those of an intent") from None
        self._intent_place = look.check(place, self._intent_place, leaf, intent_id, None)
        self._intent_seq, self.intents = seq, self.intents + 1


class _Look:
    """The tree in one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tree = Tree(connection)
        self.history: History = history.read(connection)
        self._number, self._tile = -1, b""

    def check(self, place: Any, before: int, leaf: Any, name: str, seq: int | None) -> int:
        """The place of a leaf, once it is found to be what the tree has there. Raises Misplaced."""
        if not isinstance(place, int) or not before < place < self.tree.size:
            raise Misplaced(name, seq, "it has no place in the tree after that of the one before it")
        if place >> TILE_BITS != self._number:
            self._number = place >> TILE_BITS
            self._tile = self.tree.tile(0, self._number)
        at = (place % TILE_HASHES) * HASH_BYTES
        if not isinstance(leaf, bytes) or self._tile[at : at + HASH_BYTES] != leaf_hash(leaf):
            raise Misplaced(name, seq, f"its bytes are not those of leaf {place} of the tree")
        return place

    def check_full(self, level: int, number: int) -> None:
        """Raises Misplaced unless a full tile is below its own hash."""
        tile = self.tree.tile(level, number)
        if len(tile) != TILE_BYTES or self.tree.node(TILE_BITS * (level + 1), number) != tile_root(tile):
            raise Misplaced(None, None, f"tile {number} of level {level} of the tree is not below its own hash")

    def check_levels(self) -> None:
        """Raises Misplaced unless every level has the hashes that it must have, and no other."""
        size, found = self.tree.size, self._connection.execute(_LEVELS).fetchall()
        expected, level = [], 0
        while size >> (TILE_BITS * level):
            hashes = size >> (TILE_BITS * level)
            tiles = -(-hashes // TILE_HASHES)
            expected.append((level, tiles, tiles - 1, hashes * HASH_BYTES))
            level += 1
        if found != expected:
            raise Misplaced(None, None, "the tree has tiles that do not belong to it, or lacks some")
        for level in range(1, len(expected)):
            for number in range(size >> (TILE_BITS * (level + 1))):
                self.check_full(level, number)

    def check_checkpoint(self) -> str | None:
        """The newest checkpoint. Raises Misplaced when the tree does not continue it. Its signature is not looked at:
        who can write the file could put one of before here."""
        if (note := newest_note(self._connection)) is None:
            return None
        try:
            made = Checkpoint.parse(parted(note)[0])
        except NoteRefused as error:
            raise Misplaced(None, None, f"the newest checkpoint makes no sense: {error}") from None
        if made.size > self.tree.size or self.tree.root(made.size) != made.root:
            raise Misplaced(None, None, f"the tree does not continue the checkpoint of {made.time}, size {made.size}")
        return note
