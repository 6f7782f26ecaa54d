"""Texts that are kept for a while, in SQLite: ended approvals with their requests and plans, and outputs of calls.

Ended approvals are for those who look into a decision later: nothing is decided by them. The texts of each kind are
bounded by age and bytes (notary/store/keeping.py). A text that is erased is overwritten in the file, and no copy
of it is left (notary/store/own_pages.py).
"""

from typing import Final

from ipc.backends.store import ApprovalRecord
from notary.database import OpenTransaction
from notary.store.keeping import TRIMMED_AT_ONCE, KeptBounds, kept_record, kept_text
from notary.store.own_pages import ROOM, erasing


class KeptTexts:
    """One kind of them: a table of texts by id, and one of the sums of their bytes by principal.

    Methods are given a connection inside an open transaction.
    """

    def __init__(self, table: str, sums: str, key: str) -> None:
        """Names of the tables and of the column of the id, which are no caller's."""
        self._table, self._sums, self._key = table, sums, key
        place = f"SELECT seq, principal, bytes FROM {table}"  # noqa: S608 - the names above
        oldest = "ORDER BY ended_at, seq LIMIT 1"
        self._place = f"{place} WHERE {key} = ?"
        self._over = (
            f"{place} WHERE ended_at <= ? {oldest}",
            f"{place} WHERE principal = (SELECT principal FROM {sums} WHERE bytes > ? LIMIT 1) {oldest}",  # noqa: S608
            f"{place} WHERE (SELECT sum(bytes) FROM {sums}) > ? {oldest}",  # noqa: S608
        )
        self.tables = (
            f"""
            CREATE TABLE IF NOT EXISTS {table} (
                seq INTEGER PRIMARY KEY, {key} TEXT NOT NULL UNIQUE, principal TEXT NOT NULL, ended_at REAL NOT NULL,
                bytes INTEGER NOT NULL, {ROOM},
                record TEXT NOT NULL
            ) STRICT
            """,
            f"CREATE INDEX IF NOT EXISTS {table}_by_age ON {table} (ended_at)",
            f"CREATE INDEX IF NOT EXISTS {table}_by_principal ON {table} (principal, ended_at)",
            # The sums of their bytes.
            f"""
            CREATE TABLE IF NOT EXISTS {sums} (
                principal TEXT PRIMARY KEY, bytes INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID
            """,
            f"CREATE INDEX IF NOT EXISTS {sums}_by_size ON {sums} (bytes)",
        )

    def keep(self, connection: OpenTransaction, key: str, principal: str, ended_at: float, text: str) -> None:
        """Keep a text; one of this id that was kept is not, from then on."""
        size = len(text.encode())
        self.erase(connection, key)
        with erasing(connection):
            connection.execute(
                f"INSERT INTO {self._table} ({self._key}, principal, ended_at, bytes, record)"  # noqa: S608
                " VALUES (?, ?, ?, ?, ?)",
                (key, principal, ended_at, size, text),
            )
        connection.execute(
            f"INSERT INTO {self._sums} (principal, bytes) VALUES (?, ?)"  # noqa: S608 - the names above
            f" ON CONFLICT (principal) DO UPDATE SET bytes = {self._sums}.bytes + excluded.bytes",
            (principal, size),
        )

    def kept(self, connection: OpenTransaction, key: str) -> str | None:
        """The text of this id, as long as it is kept."""
        row = connection.execute(f"SELECT record FROM {self._table} WHERE {self._key} = ?", (key,)).fetchone()  # noqa: S608
        return None if row is None else str(row[0])

    def erase(self, connection: OpenTransaction, key: str) -> None:
        """Erase the text of this id, if it is kept."""
        with erasing(connection):
            for row in connection.execute(self._place, (key,)).fetchall():
                self._erase(connection, *row)

    def trim(self, connection: OpenTransaction, bounds: KeptBounds) -> int:
        """Erase what is over the bounds, the oldest first: at most TRIMMED_AT_ONCE. How many it were."""
        with erasing(connection):
            for number in range(TRIMMED_AT_ONCE):
                row = self._first_over(connection, bounds)
                if row is None:
                    return number
                self._erase(connection, *row)
        return TRIMMED_AT_ONCE

    def _first_over(self, connection: OpenTransaction, bounds: KeptBounds) -> tuple[int, str, int] | None:
        for statement, limit in zip(self._over, bounds, strict=True):
            row = connection.execute(statement, (limit,)).fetchone()
            if row is not None:
                return int(row[0]), str(row[1]), int(row[2])
        return None

    def _erase(self, connection: OpenTransaction, seq: int, principal: str, size: int) -> None:
        connection.execute(f"DELETE FROM {self._table} WHERE seq = ?", (seq,))  # noqa: S608 - the names above
        connection.execute(f"UPDATE {self._sums} SET bytes = bytes - ? WHERE principal = ?", (size, principal))  # noqa: S608
        connection.execute(f"DELETE FROM {self._sums} WHERE principal = ? AND bytes <= 0", (principal,))  # noqa: S608


APPROVALS: Final = KeptTexts("kept_approvals", "kept_bytes", "approval_id")
TABLES: Final = APPROVALS.tables


def keep(connection: OpenTransaction, record: ApprovalRecord, ended_at: float) -> None:
    """Keep an approval that has just ended, with its whole body."""
    APPROVALS.keep(connection, record.approval_id, record.principal, ended_at, kept_text(record))


def kept(connection: OpenTransaction, approval_id: str) -> ApprovalRecord | None:
    """One of them, as long as it is kept and can be read."""
    text = APPROVALS.kept(connection, approval_id)
    return None if text is None else kept_record(text)


def forget(connection: OpenTransaction, approval_id: str) -> None:
    """Erase one of them, if it is kept."""
    APPROVALS.erase(connection, approval_id)


def trim(connection: OpenTransaction, bounds: KeptBounds) -> int:
    """Erase approvals that are over the bounds, the oldest first: at most TRIMMED_AT_ONCE. How many it were."""
    return APPROVALS.trim(connection, bounds)
