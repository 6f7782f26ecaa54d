"""DPoP proofs that were seen, and the revocation epoch, in SQLite. Functions of a connection inside a transaction.

Rows of proofs lie in the order in which they end. A settling writes neighbouring rows, on few pages, and a sweep
touches no page that new rows go to. Memory answers which were used (notary/ledger/known_proofs.py): the table keeps
them for the next notary.
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
USABLE_SECONDS = 150.0
"""How long after its `iat` a proof may be used. SECURITY: less than it is remembered, however far its `iat` was ahead.
A front may have checked a copy within the proof's window, and ask when the first use is forgotten."""
SWEPT_AT_ONCE = 2000
_FIRST_MILLISECOND = 1_000_000_000_000
"""Buckets are milliseconds. Those of earlier versions are minutes, and lower than this."""
INSERT_PROOF = "INSERT OR REPLACE INTO proofs (bucket, key, expires_at) VALUES (?, ?, ?)"


ProofRow = tuple[int, str, float]
"""Bucket, key, end."""


def read(connection: OpenTransaction) -> list[ProofRow]:
    """All that are in the table, those that end first in front."""
    return connection.execute("SELECT bucket, key, expires_at FROM proofs ORDER BY bucket, key").fetchall()


def bring(connection: OpenTransaction) -> None:
    """Give rows of an earlier version the buckets of this one, or a sweep would take them too soon."""
    connection.execute(
        "UPDATE OR REPLACE proofs SET bucket = CAST(expires_at * 1000 AS INTEGER) WHERE bucket < ?",
        (_FIRST_MILLISECOND,),
    )


def row_of(key: str, now: float) -> ProofRow:
    """The row of a proof that is used now."""
    expires_at = now + REPLAY_SECONDS
    return int(expires_at * 1000), key, expires_at


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
    over = (int(now * 1000),)
    last = connection.execute(
        f"SELECT bucket, key FROM proofs WHERE bucket < ? ORDER BY bucket, key LIMIT 1 OFFSET {SWEPT_AT_ONCE - 1}",  # noqa: S608
        over,
    ).fetchone()
    if last is None:
        connection.execute("DELETE FROM proofs WHERE bucket < ?", over)
        return False
    connection.execute("DELETE FROM proofs WHERE (bucket, key) <= (?, ?)", last)
    return True
