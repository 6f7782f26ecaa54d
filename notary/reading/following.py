"""Reads the chain onwards from a place that was reached before, in pages.

Functions of a connection that can't write. Reads settled rows alone: what the journal holds follows within a moment.
"""

from typing import Final, NamedTuple

from ipc.operations.exporting import MOST_EVENT_BYTES, MOST_EVENTS, EventPosition
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.head import read_head

_BEHIND: Final = "SELECT seq, bytes FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
_AT_ONCE: Final = 64
"""Rows of one statement: a database elsewhere sends all of them."""
_LINK: Final = b'"prev_hash":'


class Following(NamedTuple):
    """Events behind `after`. `skipped` of them before it are not in the ledger any more."""

    after: EventPosition
    events: list[bytes]
    skipped: int = 0


def continues(connection: OpenTransaction, after: EventPosition) -> bool:
    """True if the event behind this place is there and says that it follows it, or if the chain ends there. Raises
    DatabaseGone."""
    row = connection.execute(_BEHIND, (after.seq, 1)).fetchone()
    if row is None:
        return end_of(connection) == after
    return bool(row[0] == after.seq + 1 and _link_of(bytes(row[1])) == after.hash)


def follow(connection: OpenTransaction, after: EventPosition) -> Following | None:
    """The page behind this place; None if the ledger does not continue it. Raises DatabaseGone."""
    first, events = _page(connection, after.seq)
    if not events:
        end = end_of(connection)
        if end == after:
            return Following(after, [])
        return Following(end, [], end.seq - after.seq) if end.seq > after.seq else None
    link = _link_of(events[0])
    if first == after.seq + 1:
        return Following(after, events) if link == after.hash else None
    return Following(EventPosition(first - 1, link), events, first - 1 - after.seq)


def end_of(connection: OpenTransaction) -> EventPosition:
    """The place of the last settled event. Raises DatabaseGone."""
    head = read_head(connection)
    if head is None:
        raise DatabaseGone("the ledger does not say where its chain ends")
    return EventPosition(head.seq, head.hash)


def _page(connection: OpenTransaction, after: int) -> tuple[int, list[bytes]]:
    """The number of the first event behind this one, and the events from there up to a bound or a gap."""
    first, events, size = after + 1, list[bytes](), 0
    while True:
        start = first + len(events)
        rows = connection.execute(_BEHIND, (start - 1, _AT_ONCE)).fetchall()
        for seq, stored in rows:
            first = first if events else seq
            size += len(stored)
            if seq != first + len(events) or (events and size > MOST_EVENT_BYTES) or len(events) == MOST_EVENTS:
                return first, events
            events.append(bytes(stored))
        if len(rows) < _AT_ONCE:
            return first, events


def _link_of(stored: bytes) -> str | None:
    """The `prev_hash` of a stored event. A quotation mark inside a text is escaped, so no text looks like it."""
    value = stored.partition(_LINK)[2]
    return value[1:].partition(b'"')[0].decode("latin-1") if value.startswith(b'"') else None
