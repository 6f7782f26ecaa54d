"""Calls that were made under an `Idempotency-Key`, in SQLite: see notary/store/call_keys.py.

Outputs are bounded in bytes by principal and in all; the oldest are erased first, and overwritten in the file.
"""

from collections import Counter
from typing import Final

from notary.database import OpenTransaction
from notary.store.call_keys import (
    KEPT_SECONDS,
    KeyedCall,
    KeyedEnd,
    bounds_since,
    decode_call,
    decode_end,
    encode_call,
)
from notary.store.kept import KeptTexts

SWEPT_AT_ONCE: Final = 500

OUTPUTS: Final = KeptTexts("kept_outputs", "kept_output_bytes", "call_id")
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS call_keys (
        name TEXT PRIMARY KEY, principal TEXT NOT NULL, call TEXT NOT NULL, expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS call_keys_by_expiry ON call_keys (expires_at)",
    """
    CREATE TABLE IF NOT EXISTS call_key_counts (
        principal TEXT PRIMARY KEY, number INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS call_ends (
        call_id TEXT PRIMARY KEY, ended TEXT NOT NULL, expires_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS call_ends_by_expiry ON call_ends (expires_at)",
    *OUTPUTS.tables,
)


class SqliteKeyedCalls:
    """See KeyedCalls: on the connection of a unit."""

    __slots__ = ("_connection",)

    def __init__(self, connection: OpenTransaction) -> None:
        self._connection = connection

    def of_key(self, name: str) -> KeyedCall | None:
        """See KeyedCalls."""
        row = self._connection.execute("SELECT call FROM call_keys WHERE name = ?", (name,)).fetchone()
        return None if row is None else decode_call(row[0])

    def give_key(self, name: str, principal: str, call: KeyedCall) -> None:
        """See KeyedCalls."""
        is_new = self.of_key(name) is None
        self._connection.execute(
            "INSERT OR REPLACE INTO call_keys (name, principal, call, expires_at) VALUES (?, ?, ?, ?)",
            (name, principal, encode_call(call).decode(), call.expires_at),
        )
        if is_new:
            self._connection.execute(
                "INSERT INTO call_key_counts (principal, number) VALUES (?, 1)"
                " ON CONFLICT (principal) DO UPDATE SET number = call_key_counts.number + 1",
                (principal,),
            )

    def keys_of(self, principal: str, now: float) -> int:  # noqa: ARG002 - until they are swept, they count
        """See KeyedCalls."""
        row = self._connection.execute(
            "SELECT number FROM call_key_counts WHERE principal = ?", (principal,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def end_of(self, call_id: str) -> KeyedEnd | None:
        """See KeyedCalls."""
        row = self._connection.execute("SELECT ended FROM call_ends WHERE call_id = ?", (call_id,)).fetchone()
        return None if row is None else decode_end(row[0])

    def end(self, call_id: str, ended: KeyedEnd, expires_at: float) -> None:
        """See KeyedCalls."""
        self._connection.execute(
            "INSERT OR REPLACE INTO call_ends (call_id, ended, expires_at) VALUES (?, ?, ?)",
            (call_id, encode_call(ended).decode(), expires_at),
        )

    def keep_output(self, call_id: str, principal: str, output: str, now: float) -> None:
        """See KeyedCalls."""
        OUTPUTS.keep(self._connection, call_id, principal, now, output)

    def output_of(self, call_id: str) -> str | None:
        """See KeyedCalls."""
        return OUTPUTS.kept(self._connection, call_id)

    def erase_output(self, call_id: str) -> None:
        """See KeyedCalls."""
        OUTPUTS.erase(self._connection, call_id)

    def trim(self, since: float) -> int:
        """See KeyedCalls."""
        return OUTPUTS.trim(self._connection, bounds_since(since))

    def sweep(self, now: float) -> bool:
        """See KeyedCalls."""
        over = (now - KEPT_SECONDS, SWEPT_AT_ONCE)
        swept = Counter(
            row[0]
            for row in self._connection.execute(
                "DELETE FROM call_keys WHERE name IN"
                " (SELECT name FROM call_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT ?) RETURNING principal",
                over,
            ).fetchall()
        )
        for principal, number in swept.items():
            self._connection.execute(
                "UPDATE call_key_counts SET number = number - ? WHERE principal = ?", (number, principal)
            )
            self._connection.execute("DELETE FROM call_key_counts WHERE principal = ? AND number <= 0", (principal,))
        ends = self._connection.execute(
            "DELETE FROM call_ends WHERE call_id IN"
            " (SELECT call_id FROM call_ends WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
            over,
        ).rowcount
        return SWEPT_AT_ONCE in (swept.total(), ends)
