"""DPoP proofs that were seen, and the revocation epoch, in SQLite. Functions of a connection inside a transaction.

Proofs are kept in buckets of a minute, so that forgetting old ones touches no page that new ones go to.
"""

from notary.database import OpenTransaction

TABLES = (
    """
    CREATE TABLE proofs (
        bucket INTEGER NOT NULL, key TEXT NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (bucket, key)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE epochs (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL) STRICT",
    "INSERT INTO epochs (id, epoch) VALUES (1, 0)",
)

REPLAY_SECONDS = 180.0
"""How long a proof is remembered: beyond the widest skew that one may have (docs/decisions/identity.md, "DPoP")."""
BUCKET_SECONDS = 60
SWEPT_AT_ONCE = 2000
_BUCKETS = 5
"""Those that a proof which is still remembered may lie in: of three minutes, the one that has begun, and the next one
for a clock that a time service has set back a little."""
# A list after IN would be made a table of its own for each question.
_LOOK = " UNION ALL ".join(["SELECT 1 FROM proofs WHERE bucket = ? AND key = ? AND expires_at > ?"] * _BUCKETS)
INSERT_PROOF = "INSERT OR REPLACE INTO proofs (bucket, key, expires_at) VALUES (?, ?, ?)"


def is_used(connection: OpenTransaction, key: str, now: float) -> bool:
    """True for a proof that is in the table and not forgotten yet."""
    values = [value for bucket in range(_BUCKETS) for value in (_bucket(now) + bucket, key, now)]
    return connection.execute(_LOOK, values).fetchone() is not None


def row_of(key: str, now: float) -> tuple[int, str, float]:
    """The row of a proof that is used now: bucket, key, end."""
    expires_at = now + REPLAY_SECONDS
    return _bucket(expires_at), key, expires_at


def look(connection: OpenTransaction) -> None:
    """Read any proof, to find out whether proofs can be read."""
    connection.execute("SELECT 1 FROM proofs LIMIT 1").fetchone()


def epoch(connection: OpenTransaction) -> int:
    """The epoch in force."""
    return int(connection.execute("SELECT epoch FROM epochs").fetchone()[0])


def known_epoch(connection: OpenTransaction) -> int | None:
    """The epoch that the ledger knows; None where its row is gone, or holds no integer."""
    row = connection.execute("SELECT epoch FROM epochs").fetchone()
    return row[0] if row is not None and isinstance(row[0], int) else None


def raise_epoch(connection: OpenTransaction, above: int) -> tuple[int, int]:
    """(previous, current)."""
    previous = epoch(connection)
    current = max(previous, above) + 1
    connection.execute("UPDATE epochs SET epoch = ?", (current,))
    return previous, current


def keep_epoch(connection: OpenTransaction, current: int) -> None:
    """Keep the epoch that another store has raised."""
    connection.execute("UPDATE epochs SET epoch = max(epoch, ?)", (current,))


def sweep(connection: OpenTransaction, now: float) -> bool:
    """Forget at most SWEPT_AT_ONCE proofs of buckets that are over. True when there are more."""
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


def _bucket(moment: float) -> int:
    return int(moment // BUCKET_SECONDS)
