"""The interface of standing approvals, a part of the store, and their rows in SQLite.

The calls that one has been used for are counted beside it, so that two gateways which count at the same time lose none.
"""

from typing import Final, Protocol

import msgspec

from ipc.operations.standing import StandingRow
from notary.database import OpenTransaction

MAX_STANDING: Final = 256
"""Standing approvals in force."""
MAX_OF_OPERATOR: Final = 128
"""Those in force that one operator has signed."""
MAX_REVOKED: Final = 128
"""Revoked ones of one operator that are still known: one more is not added."""
KEPT_REVOKED_SECONDS: Final = 3600
"""A revoked one stays known so long, or until its time is over: then its text is too old to be added again."""
MOST_DUE: Final = 32
"""Those that one look ends."""
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS standing_approvals (
        standing_id TEXT PRIMARY KEY, action_id TEXT NOT NULL, principal TEXT NOT NULL, until INTEGER NOT NULL,
        calls INTEGER NOT NULL, record TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS standing_by_call ON standing_approvals (action_id, principal)",
    "CREATE INDEX IF NOT EXISTS standing_by_end ON standing_approvals (until)",
)
_SELECT: Final = "SELECT record FROM standing_approvals"
encode_row: Final = msgspec.json.Encoder().encode
decode_row: Final = msgspec.json.Decoder(StandingRow).decode


class StandingStore(Protocol):
    """Standing approvals within one unit. Every method may raise DatabaseGone or StoreGone."""

    def of_call(self, action_id: str, principal: str) -> list[StandingRow]:
        """Those for this action and principal; that which ends first is the first one."""
        ...

    def get(self, standing_id: str) -> StandingRow | None:
        """The one of this id. A unit that has read it depends on it."""
        ...

    def listed(self) -> list[StandingRow]:
        """All of them; that which ends first is the first one."""
        ...

    def due(self, now: float) -> list[str]:
        """Ids of at most MOST_DUE whose time is over."""
        ...

    def calls(self, standing_id: str) -> int:
        """The calls that have used it. A unit that has read them depends on them."""
        ...

    def put(self, row: StandingRow) -> None:
        """Add it, or change the row of its id."""
        ...

    def count(self, standing_id: str) -> None:
        """One more call uses it."""
        ...

    def uncount(self, standing_id: str) -> None:
        """A call that was counted was not executed; nothing to do for one that is gone."""
        ...

    def forget(self, row: StandingRow) -> None:
        """Its time is over."""
        ...


class SqliteStanding:
    """See StandingStore: on the connection of a unit."""

    __slots__ = ("_connection",)

    def __init__(self, connection: OpenTransaction) -> None:
        self._connection = connection

    def of_call(self, action_id: str, principal: str) -> list[StandingRow]:
        """See StandingStore."""
        where = f"{_SELECT} WHERE action_id = ? AND principal = ? ORDER BY until, standing_id"
        return [decode_row(row[0]) for row in self._connection.execute(where, (action_id, principal))]

    def get(self, standing_id: str) -> StandingRow | None:
        """See StandingStore."""
        row = self._connection.execute(f"{_SELECT} WHERE standing_id = ?", (standing_id,)).fetchone()
        return None if row is None else decode_row(row[0])

    def listed(self) -> list[StandingRow]:
        """See StandingStore."""
        return [decode_row(row[0]) for row in self._connection.execute(f"{_SELECT} ORDER BY until, standing_id")]

    def due(self, now: float) -> list[str]:
        """See StandingStore."""
        due = "SELECT standing_id FROM standing_approvals WHERE until <= ? ORDER BY until LIMIT ?"
        return [str(row[0]) for row in self._connection.execute(due, (now, MOST_DUE))]

    def calls(self, standing_id: str) -> int:
        """See StandingStore."""
        calls = "SELECT calls FROM standing_approvals WHERE standing_id = ?"
        row = self._connection.execute(calls, (standing_id,)).fetchone()
        return 0 if row is None else int(row[0])

    def put(self, row: StandingRow) -> None:
        """See StandingStore."""
        self._connection.execute(
            "INSERT INTO standing_approvals (standing_id, action_id, principal, until, calls, record)"
            " VALUES (?, ?, ?, ?, 0, ?) ON CONFLICT (standing_id) DO UPDATE SET"
            " record = excluded.record, until = excluded.until",
            (row.standing_id, row.action_id, row.principal, row.until, encode_row(row).decode()),
        )

    def count(self, standing_id: str) -> None:
        """See StandingStore."""
        count = "UPDATE standing_approvals SET calls = calls + 1 WHERE standing_id = ?"
        self._connection.execute(count, (standing_id,))

    def uncount(self, standing_id: str) -> None:
        """See StandingStore."""
        uncount = "UPDATE standing_approvals SET calls = calls - 1 WHERE standing_id = ? AND calls > 0"
        self._connection.execute(uncount, (standing_id,))

    def forget(self, row: StandingRow) -> None:
        """See StandingStore."""
        self._connection.execute("DELETE FROM standing_approvals WHERE standing_id = ?", (row.standing_id,))
