"""Tiles of the tree in the database: 256 hashes a row, as C2SP tlog-tiles cuts them.

Level 0 holds hashes of leaves; each hash of level n + 1 is the root of one full tile of level n. The last tile of a
level may be partial, and is written anew when it grows. Functions of a connection, inside the transaction of the
caller; the size of the tree is how many hashes level 0 has.
"""

from collections.abc import Iterable
from typing import Final

from notary.database import DatabaseGone, OpenTransaction
from notary.tree.merkle import HASH_BYTES, consistency_proof, folded, inclusion_proof, root

TILE_HASHES: Final = 256
TILE_BITS: Final = 8
TILE_BYTES: Final = TILE_HASHES * HASH_BYTES
KEPT_TILES: Final = 16
"""Tiles that one query keeps, 16 kB each: a root or a proof needs one or two of a level."""

TABLE: Final = """
CREATE TABLE tiles (level INTEGER NOT NULL, number INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY (level, number))
STRICT
"""
_LAST = "SELECT number, hashes FROM tiles WHERE level = ? ORDER BY number DESC LIMIT 1"
_READ = "SELECT hashes FROM tiles WHERE level = ? AND number = ?"
_WRITE = (
    "INSERT INTO tiles (level, number, hashes) VALUES (?, ?, ?)"
    " ON CONFLICT (level, number) DO UPDATE SET hashes = excluded.hashes"
)


class TilesDamaged(DatabaseGone):
    """The tiles do not make a tree. The text says where."""


def size(connection: OpenTransaction) -> int:
    """How many leaves the tree has. Raises TilesDamaged."""
    number, hashes = _last(connection, 0)
    return number * TILE_HASHES + len(hashes) // HASH_BYTES


def append(connection: OpenTransaction, leaves: Iterable[bytes]) -> None:
    """Append hashes of leaves. Costs one hash a leaf and a row or two a tile. Raises TilesDamaged."""
    level, fresh = 0, b"".join(leaves)
    while fresh:
        number, kept = _last(connection, level)
        if len(kept) == TILE_BYTES:
            number, kept = number + 1, b""
        data = kept + fresh
        tiles = [data[at : at + TILE_BYTES] for at in range(0, len(data), TILE_BYTES)]
        connection.executemany(_WRITE, [(level, number + at, tile) for at, tile in enumerate(tiles)])
        fresh = b"".join([tile_root(tile) for tile in tiles if len(tile) == TILE_BYTES])
        level += 1


class Tree:
    """One look at the tree. Keeps tiles that it has read: for one transaction."""

    def __init__(self, connection: OpenTransaction) -> None:
        self._connection = connection
        self._tiles: dict[tuple[int, int], list[bytes]] = {}
        self.size = size(connection)

    def root(self, of_size: int | None = None) -> bytes:
        """Root of the whole tree, or of its first leaves. Raises TilesDamaged."""
        return root(self.node, self.size if of_size is None else of_size)

    def inclusion_proof(self, index: int, of_size: int) -> list[bytes]:
        """See merkle.inclusion_proof. Raises TilesDamaged, ValueError."""
        return inclusion_proof(self.node, index, of_size)

    def consistency_proof(self, old_size: int, of_size: int) -> list[bytes]:
        """See merkle.consistency_proof. Raises TilesDamaged, ValueError."""
        return consistency_proof(self.node, old_size, of_size)

    def node(self, height: int, index: int) -> bytes:
        """Hash of a complete subtree. Raises TilesDamaged."""
        level, inner = divmod(height, TILE_BITS)
        number, offset = divmod(index << inner, TILE_HASHES)
        levels = self._folded(level, number)
        at = (offset >> inner) * HASH_BYTES
        if inner >= len(levels) or len(levels[inner]) < at + HASH_BYTES:
            raise TilesDamaged(f"tile {number} of level {level} lacks hashes")
        return levels[inner][at : at + HASH_BYTES]

    def tile(self, level: int, number: int) -> bytes:
        """The hashes of one tile, one after the other. Raises TilesDamaged for one that is not there."""
        row = self._connection.execute(_READ, (level, number)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise TilesDamaged(f"tile {number} of level {level} is missing")
        return row[0]

    def _folded(self, level: int, number: int) -> list[bytes]:
        levels = self._tiles.get((level, number))
        if levels is None:
            while len(self._tiles) >= KEPT_TILES:
                del self._tiles[next(iter(self._tiles))]
            levels = folded(self.tile(level, number))
        else:
            del self._tiles[level, number]
        self._tiles[level, number] = levels  # the last to go
        return levels


def _last(connection: OpenTransaction, level: int) -> tuple[int, bytes]:
    row = connection.execute(_LAST, (level,)).fetchone()
    if row is None:
        return 0, b""
    number, hashes = row
    if not isinstance(number, int) or not isinstance(hashes, bytes):
        raise TilesDamaged(f"a tile of level {level} is not a tile")
    if number < 0 or len(hashes) % HASH_BYTES or not HASH_BYTES <= len(hashes) <= TILE_BYTES:
        raise TilesDamaged(f"tile {number} of level {level} is not a tile")
    return number, hashes


def tile_root(tile: bytes) -> bytes:
    """Hash of the complete subtree above a tile, which is full."""
    return folded(tile)[-1]
