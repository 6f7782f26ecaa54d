"""Deliveries that were given up: shown to operators, and put back among what waits when one says so.

Guarantees that what is put back is moved, not copied, in the transaction of its event, and begins at its first attempt.
"""

from typing import Final

from ipc.backends.webhooks import answered
from ipc.evidence.records import AbandonedDelivery
from ipc.operations.deliveries import RedeliverDeliveries
from notary.database import OpenTransaction

AT_ONCE: Final = 100
"""Deliveries that one request moves at most: this bounds its transaction."""
_NAMES = "event_id, kind, endpoint, attempts, at, error"
_NEWEST = f"SELECT {_NAMES} FROM given_up WHERE CAST(? AS TEXT) IS NULL OR endpoint = ? ORDER BY seq DESC LIMIT ?"  # noqa: S608
_CHOSEN = """
SELECT seq FROM given_up WHERE endpoint = ? AND (CAST(? AS TEXT) IS NULL OR event_id = ?){} ORDER BY seq LIMIT ?
"""
_REQUEUE = """
INSERT INTO outbox (event_id, kind, endpoint, due, payload)
SELECT event_id, kind, endpoint, ?, payload FROM given_up WHERE seq = ?
"""


def newest(connection: OpenTransaction, endpoint: str | None, limit: int) -> list[AbandonedDelivery]:
    """The newest so many, of one endpoint or of all."""
    names = _NAMES.split(", ")
    rows = connection.execute(_NEWEST, (endpoint, endpoint, limit))
    return [AbandonedDelivery(**dict(zip(names, row, strict=True))) for row in rows]


def count(connection: OpenTransaction) -> dict[str, int]:
    """How many are kept, by endpoint: a walk of 10,000 rows at most."""
    return dict(connection.execute("SELECT endpoint, count(*) FROM given_up GROUP BY endpoint").fetchall())


def requeue(connection: OpenTransaction, asked: RedeliverDeliveries, room: int) -> int:
    """Move the oldest, or that of one event, as far as there is room; how many."""
    most = min(AT_ONCE, max(room, 0))
    errors = [answered(status) for status in asked.statuses[:AT_ONCE]]
    of_these = f" AND error IN ({', '.join('?' * len(errors))})" if errors else ""
    rows = connection.execute(_CHOSEN.format(of_these), (asked.endpoint, asked.event_id, asked.event_id, *errors, most))
    chosen = [seq for (seq,) in rows]
    for seq in chosen:
        connection.execute(_REQUEUE, (asked.now, seq))
        connection.execute("DELETE FROM given_up WHERE seq = ?", (seq,))
    return len(chosen)
