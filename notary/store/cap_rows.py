"""The amounts that caps count, in SQLite. Texts, since they may exceed 64 bits."""

from typing import Final

from msgspec.structs import replace

from ipc.approvals import TTL_SECONDS
from ipc.caps import end_of_step
from notary.database import OpenTransaction
from notary.store.cap_room import CapRoom
from notary.store.caps import (
    HELD_SECONDS,
    KEPT_SECONDS,
    MAX_SUBJECTS,
    CapAmount,
    CapCounter,
    gone_at,
    reservations_of,
    text_of_reservations,
)

TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS cap_amounts (
        action_id TEXT NOT NULL, pointer TEXT NOT NULL, per TEXT NOT NULL, window INTEGER NOT NULL,
        subject TEXT NOT NULL, until INTEGER NOT NULL, total TEXT NOT NULL, unknown TEXT NOT NULL,
        gone_at INTEGER NOT NULL, PRIMARY KEY (action_id, pointer, per, window, subject, until)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS cap_amounts_by_end ON cap_amounts (gone_at)",
    """
    CREATE TABLE IF NOT EXISTS cap_reserved (
        approval_id TEXT PRIMARY KEY, reserved TEXT NOT NULL, gone_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS cap_reserved_by_end ON cap_reserved (gone_at)",
)
SWEPT_AT_ONCE: Final = 500
_CAP: Final = "action_id = ? AND pointer = ? AND per = ? AND window = ?"
_STEP: Final = f"{_CAP} AND subject = ? AND until = ?"
_LEAST: Final = f"SELECT min(subject) AS subject FROM cap_amounts WHERE {_CAP}"  # noqa: S608
_SUBJECTS: Final = (
    f"WITH RECURSIVE found(subject) AS ({_LEAST} AND (? IS NULL OR subject > ?) UNION ALL"  # noqa: S608
    f" SELECT ({_LEAST} AND cap_amounts.subject > found.subject) FROM found WHERE found.subject IS NOT NULL)"
    " SELECT subject FROM found WHERE subject IS NOT NULL LIMIT ?"
)
"""One look at the index for each subject, however many steps it has."""
_KEY_OF: Final = {
    "cap_amounts": "action_id, pointer, per, window, subject, until", "cap_reserved": "approval_id",
}  # fmt: skip


def bring_back(connection: OpenTransaction, now: float) -> None:
    """Count the amounts of steps to come in the last step that may be counted in now, those of holds too: the clock had
    been ahead."""
    caps = SqliteCaps(connection)
    rows = connection.execute(
        "SELECT action_id, pointer, per, window, subject, until, total, unknown FROM cap_amounts WHERE until > ?",
        (now,),
    ).fetchall()
    for *names, until, total, unknown in rows:
        counter = CapCounter(*names)
        last = _last_step(counter.window_seconds, now)
        if until > last:
            connection.execute(f"DELETE FROM cap_amounts WHERE {_STEP}", (*counter, until))  # noqa: S608
            caps.add(counter, last, int(total))
            caps.mark(counter, last, int(unknown))
    for approval_id, kept in connection.execute("SELECT approval_id, reserved FROM cap_reserved").fetchall():
        brought = [
            replace(one, until=min(one.until, _last_step(one.use.window_seconds, now))) for one in reservations_of(kept)
        ]
        connection.execute(
            "UPDATE cap_reserved SET reserved = ?, gone_at = ? WHERE approval_id = ?",
            (text_of_reservations(brought), max(one.until + one.use.window_seconds for one in brought), approval_id),
        )


def _last_step(window_seconds: int, now: float) -> int:
    return end_of_step(now + TTL_SECONDS + HELD_SECONDS, window_seconds)


class SqliteCaps:
    """See CapCounts."""

    __slots__ = ("_connection", "_room")

    def __init__(self, connection: OpenTransaction, room: CapRoom | None = None) -> None:
        self._connection = connection
        self._room = room or CapRoom()

    def amount(self, counter: CapCounter, now: float) -> CapAmount:
        """See CapCounts."""
        rows = self._connection.execute(
            f"SELECT total, unknown FROM cap_amounts WHERE {_CAP} AND subject = ? AND gone_at > ?",  # noqa: S608
            (*counter, now),
        ).fetchall()
        return CapAmount(sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows))

    def add(self, counter: CapCounter, until: int, units: int) -> None:
        """See CapCounts."""
        kept = self._step(counter, until)
        if kept is None:
            self._connection.execute(
                "INSERT INTO cap_amounts (action_id, pointer, per, window, subject, until, total, unknown, gone_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, '0', ?)",
                (*counter, until, str(units), gone_at(counter, until)),
            )
        else:
            self._set(counter, until, CapAmount(kept.total + units, kept.unknown))

    def take(self, counter: CapCounter, until: int, units: int) -> None:
        """See CapCounts."""
        kept = self._step(counter, until)
        if kept is not None:
            self._set(counter, until, CapAmount(max(0, kept.total - units), kept.unknown))

    def mark(self, counter: CapCounter, until: int, units: int) -> None:
        """See CapCounts."""
        kept = self._step(counter, until)
        if kept is not None:
            self._set(counter, until, CapAmount(kept.total, min(kept.total, kept.unknown + units)))

    def has_room(self, counter: CapCounter, now: float) -> bool:
        """See CapCounts."""
        row = self._connection.execute(
            f"SELECT 1 FROM cap_amounts WHERE {_CAP} AND subject = ? AND gone_at > ? LIMIT 1",  # noqa: S608
            (*counter, now),
        ).fetchone()
        return row is not None or self._room.takes_one(
            counter[:-1], now, lambda: MAX_SUBJECTS - len(self.subjects(counter, now, None, MAX_SUBJECTS))
        )

    def subjects(self, counter: CapCounter, now: float, after: str | None, limit: int) -> list[str]:  # noqa: ARG002
        """See CapCounts. Some of them count no more and are not swept yet."""
        cap = counter[:-1]
        return [row[0] for row in self._connection.execute(_SUBJECTS, (*cap, after, after, *cap, limit))]

    def keep_reserved(self, approval_id: str, reserved: str, gone_at: int) -> None:
        """See CapCounts."""
        self._connection.execute(
            "INSERT INTO cap_reserved (approval_id, reserved, gone_at) VALUES (?, ?, ?)",
            (approval_id, reserved, gone_at),
        )

    def reserved(self, approval_id: str) -> str | None:
        """See CapCounts."""
        row = self._connection.execute(
            "SELECT reserved FROM cap_reserved WHERE approval_id = ?", (approval_id,)
        ).fetchone()
        return None if row is None else row[0]

    def drop_reserved(self, approval_id: str) -> None:
        """See CapCounts."""
        self._connection.execute("DELETE FROM cap_reserved WHERE approval_id = ?", (approval_id,))

    def sweep(self, now: float) -> bool:
        """Forget at most SWEPT_AT_ONCE rows of each kind that count no more. True when there may be more."""
        swept = [self._swept(table, now - KEPT_SECONDS) for table in _KEY_OF]
        return any(swept)

    def _swept(self, table: str, before: float) -> bool:
        key = _KEY_OF[table]
        swept = self._connection.execute(
            f"DELETE FROM {table} WHERE ({key}) IN"  # noqa: S608 - the names above
            f" (SELECT {key} FROM {table} WHERE gone_at <= ? ORDER BY gone_at LIMIT ?)",
            (before, SWEPT_AT_ONCE),
        ).rowcount
        return swept == SWEPT_AT_ONCE

    def _step(self, counter: CapCounter, until: int) -> CapAmount | None:
        row = self._connection.execute(
            f"SELECT total, unknown FROM cap_amounts WHERE {_STEP}",  # noqa: S608
            (*counter, until),
        ).fetchone()
        return None if row is None else CapAmount(int(row[0]), int(row[1]))

    def _set(self, counter: CapCounter, until: int, amount: CapAmount) -> None:
        self._connection.execute(
            f"UPDATE cap_amounts SET total = ?, unknown = ? WHERE {_STEP}",  # noqa: S608
            (str(amount.total), str(amount.unknown), *counter, until),
        )
