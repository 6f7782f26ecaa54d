"""Makes the rows of a ledger from before the tree its first leaves: all events, then all intents.

The order between events and intents is unknown there; each kind keeps its own order. `history` in `meta`
says how many there were of each.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from notary.database import DatabaseGone, OpenTransaction
from notary.ledger import page_ring
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf
from notary.ledger.settling import settle
from notary.tree import tiles
from notary.tree.merkle import leaf_hash

CHUNK = 4096
_EVENTS = "SELECT bytes FROM events ORDER BY seq"
_INTENTS = f"SELECT {', '.join(INTENT_COLUMNS)} FROM intents ORDER BY seq"  # noqa: S608 - names of columns


class History(msgspec.Struct, frozen=True, array_like=True):
    """How many events and intents there were before the tree."""

    events: int
    intents: int

    @property
    def leaves(self) -> int:
        """How many leaves they are."""
        return self.events + self.intents


def bring(connection: OpenTransaction) -> None:
    """Make the leaves of what the ledger holds, once; inside the transaction that is open. Raises DatabaseGone."""
    contents = page_ring.read(connection)
    settle(connection, contents.entries, contents.last)
    history = History(
        _append(connection, _EVENTS, lambda row: bytes(row[0])), _append(connection, _INTENTS, intent_leaf)
    )
    connection.execute("INSERT INTO meta (key, value) VALUES ('history', ?)", (msgspec.json.encode(history).decode(),))


def read(connection: OpenTransaction) -> History:
    """How many leaves are history. Raises DatabaseGone."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'history'").fetchone()
    try:
        return msgspec.json.decode("" if row is None else row[0], type=History)
    except (TypeError, RecursionError, msgspec.DecodeError) as error:
        raise DatabaseGone(f"the ledger does not say where its tree begins: {error}") from None


def _append(connection: OpenTransaction, statement: str, leaf_of: Callable[[Any], bytes]) -> int:
    rows, count = connection.execute(statement), 0
    while chunk := rows.fetchmany(CHUNK):
        tiles.append(connection, _hashed(chunk, leaf_of))
        count += len(chunk)
    return count


def _hashed(rows: Iterable[Any], leaf_of: Callable[[Any], bytes]) -> list[bytes]:
    return [leaf_hash(leaf_of(row)) for row in rows]
