"""Replay cache and revocation epoch in SQLite: one visit for each authenticated request.

A proof's key is a hash and lands anywhere; what keeps that cheap is that keys lie in buckets of a minute of expiry: a
bucket that is over is swept page after page, without a second index. Functions of a connection inside a transaction.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from frontend.stores.interface import CheckIn

TABLES = (
    """
    CREATE TABLE proofs (
        bucket INTEGER NOT NULL, key TEXT NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (bucket, key)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE epochs (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL) STRICT",
    "INSERT INTO epochs (id, epoch) VALUES (1, 0)",
)

BUCKET_SECONDS = 60
SWEPT_AT_ONCE = 2000

# Looks into every bucket that is not over, since a proof seen again may come with another expiry. One row, whatever is
# asked and found: every step of a statement hands the interpreter to another thread and has to get it back.
_LOOK = """
WITH RECURSIVE live (bucket) AS (
    SELECT min(bucket) FROM proofs WHERE bucket >= ?1
    UNION ALL
    SELECT (SELECT min(bucket) FROM proofs WHERE bucket > live.bucket) FROM live WHERE bucket IS NOT NULL
)
SELECT epoch, (
    SELECT json_group_array(asked.value) FROM json_each(?2) AS asked WHERE EXISTS (
        SELECT 1 FROM live JOIN proofs ON proofs.bucket = live.bucket AND proofs.key = asked.value WHERE expires_at > ?3
    )
) FROM epochs
"""
_INSERT = """
INSERT OR REPLACE INTO proofs (bucket, key, expires_at)
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
"""


class Visit(NamedTuple):
    """A proof that is shown; times in seconds since the Unix epoch."""

    key: str
    expires_at: float
    now: float


def check_in(connection: sqlite3.Connection, visits: Sequence[Visit]) -> list[CheckIn]:
    """Record each proof unless it is there and has not expired; read the epoch. Of one key twice, the first is new."""
    now = min(visit.now for visit in visits)
    keys = json.dumps([visit.key for visit in visits])
    epoch, found = connection.execute(_LOOK, (_bucket(now), keys, now)).fetchone()
    known = set(json.loads(found))
    new: list[tuple[int, str, float]] = []
    outcomes = []
    for visit in visits:
        is_fresh = visit.key not in known
        if is_fresh:
            known.add(visit.key)
            new.append((_bucket(visit.expires_at), visit.key, visit.expires_at))
        outcomes.append(CheckIn(is_fresh=is_fresh, epoch=epoch))
    if new:
        connection.execute(_INSERT, (json.dumps(new),))
    return outcomes


def epoch(connection: sqlite3.Connection) -> int:
    """The epoch in force."""
    return int(connection.execute("SELECT epoch FROM epochs").fetchone()[0])


def raise_epoch(connection: sqlite3.Connection, above: int = 0) -> tuple[int, int]:
    """(previous, current)."""
    previous = epoch(connection)
    current = max(previous, above) + 1
    connection.execute("UPDATE epochs SET epoch = ?", (current,))
    return previous, current


def sweep(now: float) -> Callable[[sqlite3.Connection], bool]:
    """Forget at most SWEPT_AT_ONCE proofs of buckets that are over. True when there are more."""

    def work(connection: sqlite3.Connection) -> bool:
        over = (_bucket(now),)
        last = connection.execute(
            f"SELECT bucket, key FROM proofs WHERE bucket < ? ORDER BY bucket, key LIMIT 1 OFFSET {SWEPT_AT_ONCE - 1}",  # noqa: S608
            over,
        ).fetchone()
        if last is None:
            connection.execute("DELETE FROM proofs WHERE bucket < ?", over)
            return False
        connection.execute("DELETE FROM proofs WHERE (bucket, key) <= (?, ?)", last)
        return True

    return work


def _bucket(moment: float) -> int:
    return int(moment // BUCKET_SECONDS)
