"""The tree walker: is every event and every intent the leaf that the tiles have in its place, and are the tiles a tree?

Walks beside the walk along the chain (notary/reading/verify.py), in steps, with constant memory. Each event and each
intent is compared with the hash in its place; places only rise, and there are as many leaves as rows: so nothing is
there twice, and nothing is missing. Every full tile is compared with its hash one level above.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from operator import lt
from typing import Any, Final, NamedTuple

from notary.database import OpenTransaction
from notary.ledger import history
from notary.ledger.cut import Cut
from notary.ledger.history import History
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf, leaves_of
from notary.ledger.page_ring import RingEntry
from notary.reading.standing import MOST_NAMES
from notary.reading.verify import FIRST
from notary.tree.checkpoint import Checkpoint, NoteRefused, parted
from notary.tree.merkle import HASH_BYTES
from notary.tree.notes import Keys, opened
from notary.tree.tiles import TILE_BITS, TILE_BYTES, TILE_HASHES, Tree, tile_root

CHUNK: Final = 256
_BYTES, _LEAF = 9, 10
"""Where a row of an event has its bytes, and its place."""
_INTENT: Final = ", ".join(("seq", *INTENT_COLUMNS, "leaf"))
_INTENTS: Final = f"SELECT {_INTENT} FROM intents WHERE seq >= ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608 - columns
_CHECKPOINTS: Final = f"SELECT size, time, note FROM checkpoints WHERE size >= ? ORDER BY size LIMIT {CHUNK}"  # noqa: S608 - a number
_LEVELS: Final = "SELECT level, count(*), max(number), sum(length(hashes)) FROM tiles GROUP BY level ORDER BY level"


class Misplaced(Exception):
    """A leaf, a tile or a checkpoint that does not fit. `name` is the id of the event or intent, None for others."""

    def __init__(self, name: str | None, seq: int | None, reason: str) -> None:
        super().__init__(reason)
        self.name, self.seq, self.reason = name, seq, reason


class Proven(NamedTuple):
    """The tree that was found whole: size, root, and the newest checkpoint, which it continues."""

    size: int
    root: bytes | None
    note: str | None


class TreeWalk:
    """Where a walk along one tree has come to. `keys`: of checkpoints; without any, signatures are not looked at."""

    def __init__(self, keys: Keys | None = None) -> None:
        self.has_more = True
        """Intents, tiles or checkpoints are left that were there at the last step."""
        self.intents = 0
        self.checkpoints = 0
        """Number of the ledger's own checkpoints that the tree continues."""
        self.names = set(list(keys or ())[:MOST_NAMES])
        """Names of the ledger, of its keys and its checkpoints."""
        self._keys = keys
        self._events = 0
        self._event_place = self._intent_place = -1
        self._full_tile = 0
        self._next_checkpoint = FIRST
        self._note: str | None = None
        self._first_tile = 0

    def begin(self, beginning: Cut, *, is_segment: bool) -> None:
        """The walk is along what is behind a cut. A segment has no tiles of leaves before that of its first leaf."""
        self._events, self.intents = beginning.events, beginning.intents
        self._event_place = self._intent_place = beginning.leaves - 1
        if is_segment:
            self._first_tile = self._full_tile = beginning.leaves // TILE_HASHES

    @property
    def committed(self) -> int:
        """How many leaves the newest checkpoint commits to."""
        return max(self._next_checkpoint - 1, 0)

    def step(self, connection: OpenTransaction, rows: Sequence[Sequence[Any]]) -> None:
        """Check these events, the next intents, tiles and checkpoints, in one transaction.

        Rows are those of EVENT_COLUMNS. Raises Misplaced, TilesDamaged.
        """
        look = _Look(connection)
        self._check_events(look, rows)
        intents = connection.execute(_INTENTS, (self.intents + 1 if self.intents else FIRST,)).fetchall()
        self._check_intents(look, intents)
        until = min(self._full_tile + 2 + (len(rows) + len(intents)) // TILE_HASHES, look.tree.size // TILE_HASHES)
        for number in range(self._full_tile, until):
            look.check_full(0, number)
        self._full_tile = until
        notes = connection.execute(_CHECKPOINTS, (self._next_checkpoint,)).fetchall()
        for size, time, note in notes:
            name = look.check_checkpoint(size, time, note, self._keys)
            if len(self.names) < MOST_NAMES:
                self.names.add(name)
            self._next_checkpoint, self._note = size + 1, note
            self.checkpoints += 1
        self.has_more = CHUNK in (len(intents), len(notes)) or until < look.tree.size // TILE_HASHES

    def end(self, connection: OpenTransaction, entries: Sequence[RingEntry]) -> Proven:
        """Check that leaves and rows are as many, that the entries go on where the tree ends, and the upper levels; in
        the transaction of the last step. Raises Misplaced, TilesDamaged."""
        look = _Look(connection)
        size = look.tree.size
        if self._events + self.intents != size:
            raise Misplaced(None, None, f"the tree has {size} leaves, and events and intents are "
                                        f"{self._events + self.intents}")  # fmt: skip
        if self._events < look.history.events or self.intents < look.history.intents:
            raise Misplaced(None, None, "the ledger says that more is from before there was a tree than there is")
        if any((entry.events or entry.intents) and not entry.event_leaves + entry.intent_leaves for entry in entries):
            raise Misplaced(None, None, "the journal does not say where in the tree its events and intents are")
        places = [place for place, _ in leaves_of(entries)]
        if places != list(range(size, size + len(places))):
            raise Misplaced(None, None, f"the journal does not go on at leaf {size}, where the tree ends")
        look.check_levels(self._first_tile)
        if size and self._keys is not None and self._note is None:
            raise Misplaced(None, None, "no checkpoint commits to it, and there are keys to check one with")
        return Proven(size, look.tree.root(), self._note)

    def _check_events(self, look: "_Look", rows: Sequence[Sequence[Any]]) -> None:
        if not rows:
            return
        if rows[0][0] <= look.history.events:
            places = [_place(row[_LEAF], row[0], look.history.events, 0) for row in rows]
        else:
            places = [row[_LEAF] for row in rows]
        wrong = look.wrong(places, self._event_place, [row[_BYTES] for row in rows])
        if wrong is not None:
            at, reason = wrong
            raise Misplaced(str(rows[at][1]), rows[at][0], reason)
        self._event_place = places[-1]
        self._events += len(rows)

    def _check_intents(self, look: "_Look", rows: Sequence[Sequence[Any]]) -> None:
        places, leaves = list[Any](), list[bytes]()
        for number, row in enumerate(rows, self.intents + 1):
            if row[0] != number:
                raise Misplaced(str(row[1]), None, f"intent number {number} is missing before it")
            places.append(_place(row[-1], number, look.history.intents, look.history.events))
            try:
                leaves.append(intent_leaf(row[1:-1]))
            except (ValueError, TypeError):
                raise Misplaced(str(row[1]), None, "its columns are not those of an intent") from None
        wrong = look.wrong(places, self._intent_place, leaves)
        if wrong is not None:
            at, reason = wrong
            raise Misplaced(str(rows[at][1]), None, reason)
        if rows:
            self._intent_place = places[-1]
            self.intents += len(rows)


def _place(stored: Any, number: int, before_tree: int, first: int) -> Any:
    """The place of a row: as stored, or, of what is from before there was a tree, by its number."""
    if number > before_tree:
        return stored
    return first + number - 1 if stored is None else None


class _Look:
    """The tree in one transaction."""

    def __init__(self, connection: OpenTransaction) -> None:
        self._connection = connection
        self.tree = Tree(connection)
        self.history: History = history.read(connection)

    def wrong(self, places: Sequence[Any], before: int, leaves: Sequence[Any]) -> tuple[int, str] | None:
        """Which of these is not what the tree has in its place, where places rise from `before` on, and why."""
        size = self.tree.size
        if all(isinstance(place, int) for place in places) and all(map(lt, [before, *places], [*places, size])):
            kept = self._hashes_at(places)
            try:
                if kept == [sha256(b"\0" + leaf).digest() for leaf in leaves]:
                    return None
            except TypeError:
                pass  # a leaf that is not bytes
            for at, leaf in enumerate(leaves):
                if not isinstance(leaf, bytes) or sha256(b"\0" + leaf).digest() != kept[at]:
                    return at, f"its bytes are not those of leaf {places[at]} of the tree"
        for at, place in enumerate(places):
            if not isinstance(place, int) or not before < place < size:
                return at, "it has no place in the tree after that of the one before it"
            if not isinstance(leaves[at], bytes) or self._hashes_at([place]) != [sha256(b"\0" + leaves[at]).digest()]:
                return at, f"its bytes are not those of leaf {place} of the tree"
            before = place
        return None

    def _hashes_at(self, places: Iterable[int]) -> list[bytes]:
        number, tile, hashes = -1, b"", []
        for place in places:
            if place >> TILE_BITS != number:
                number = place >> TILE_BITS
                tile = self.tree.tile(0, number)
            at = (place % TILE_HASHES) * HASH_BYTES
            hashes.append(tile[at : at + HASH_BYTES])
        return hashes

    def check_full(self, level: int, number: int) -> None:
        """Raises Misplaced unless a full tile is below its own hash."""
        tile = self.tree.tile(level, number)
        if len(tile) != TILE_BYTES or self.tree.node(TILE_BITS * (level + 1), number) != tile_root(tile):
            raise Misplaced(None, None, f"tile {number} of level {level} of the tree is not below its own hash")

    def check_levels(self, first_tile: int) -> None:
        """Raises Misplaced unless every level has the hashes that it must have, and no other; the lowest one those from
        `first_tile` on."""
        size, levels = self.tree.size, self._connection.execute(_LEVELS).fetchall()
        expected, level = [], 0
        while size >> (TILE_BITS * level):
            hashes = size >> (TILE_BITS * level)
            tiles = -(-hashes // TILE_HASHES)
            expected.append((level, tiles, tiles - 1, hashes * HASH_BYTES))
            level += 1
        if first_tile:
            _, tiles, last, length = expected[0]
            expected[0] = (0, tiles - first_tile, last, length - first_tile * TILE_BYTES)
        if levels != expected:
            raise Misplaced(None, None, "the tree has tiles that do not belong to it, or lacks some")
        for level in range(1, len(expected)):
            for number in range(size >> (TILE_BITS * (level + 1))):
                self.check_full(level, number)

    def check_checkpoint(self, size: Any, time: Any, note: Any, keys: Keys | None) -> str:
        """The origin of a stored checkpoint. Raises Misplaced unless the tree continues it. Without keys its signature
        is not checked: a person who can write the file could put an earlier checkpoint here."""
        try:
            made = Checkpoint.parse(parted(note)[0] if keys is None else opened(note, keys))
        except (NoteRefused, TypeError, AttributeError) as error:
            hint = "" if keys is None else "; of a log whose key was rotated, give every key: --checkpoint-key"
            raise Misplaced(None, None, f"the checkpoint of size {size} makes no sense: {error}{hint}") from None
        if (made.size, made.time) != (size, time):
            raise Misplaced(None, None, f"the checkpoint of size {size} does not say what its columns say")
        if made.size > self.tree.size or self.tree.root(made.size) != made.root:
            raise Misplaced(None, None, f"the tree does not continue the checkpoint of {made.time}, size {made.size}")
        return made.origin
