"""Checks events of a sealed segment that are still in the ledger, until the gateway has deleted them.

Their chain leads from the last one that was deleted to the last one that was sealed; receipts and kept values are those
that they name. Without a deletion under way there may be none.
"""

from typing import Final

from notary.database import OpenTransaction
from notary.ledger.cut import Cut, read_cleared
from notary.reading.kept_walk import KeptWalk
from notary.reading.named_walk import NamedWalk
from notary.reading.verify import CHUNK, EVENT_COLUMNS, Break, Walk
from notary.signing.receipt_keys import ReceiptKeys

_FIRST: Final = "SELECT seq, event_id FROM events WHERE seq <= ? LIMIT 1"
_ROWS: Final = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608


def problem_of_leftover(connection: OpenTransaction, beginning: Cut, keys: ReceiptKeys | None) -> Break | None:
    """The first thing before the beginning of a ledger that may not be there, or does not fit. Raises DatabaseGone,
    and what the database raises for damage."""
    cleared = read_cleared(connection)
    gone = beginning.events if cleared is None else cleared.events
    if (row := connection.execute(_FIRST, (gone,)).fetchone()) is not None:
        return Break(str(row[1]), row[0], "it is sealed in a segment, and is here once more")
    if cleared is None:
        return None
    chain, named, kept = Walk(cleared.head), NamedWalk(keys), KeptWalk()
    named.begin(cleared)
    while rows := connection.execute(_ROWS, (chain.head.seq, beginning.events)).fetchall():
        broken = chain.step(rows) or named.step(connection, rows, chain.events)
        broken = broken or kept.step(connection, [row[0] for row in rows], chain.events)
        if broken is not None:
            return broken
    if chain.head == beginning.head:
        return None
    return Break(chain.last_id, chain.head.seq, "it does not lead to the end of the segment that it is sealed in")
