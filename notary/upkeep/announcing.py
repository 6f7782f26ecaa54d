"""Which checkpoints webhooks tell of: the newest, at most one a minute while the tree grows, and one when it drains.

Guarantees one notification for a checkpoint, however often the notary starts. A notification of a checkpoint has no
event: an event adds a leaf to the tree, and so would lead to another checkpoint without end.
"""

import time
from collections.abc import Callable
from math import inf
from typing import Final

import msgspec

from ipc.process.clock import ClockWrong, parse_iso
from ipc.process.logs import log
from ipc.texts.identifiers import new
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.message import checkpoint_body
from notary.ledger.outbox import Queued
from notary.ledger.writing import queue_deliveries
from notary.reading.queries import newest_note
from notary.state import NotaryState
from notary.tree.checkpoint import Checkpoint, parted

KIND: Final = "audit.checkpoint"
META: Final = "announced"
_READ = "SELECT value FROM meta WHERE key = ?"
_WRITE = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"


class AnnouncedCheckpoint(msgspec.Struct, frozen=True):
    """The size of the last checkpoint that webhooks were told of, and the time of that (Unix seconds)."""

    size: int = 0
    time: float = 0.0


class Announcements:
    """Those of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Raises DatabaseGone."""
        self._state = state
        self._monotonic = monotonic
        with state.database.unit(writes=False) as connection:
            self._last = _read(connection)
        self._next = monotonic() + self._rest_of_pause()
        self._is_failing = False

    def patience(self) -> float:
        """Seconds until one is due; without end while there is nothing to tell."""
        return max(0.0, self._next - self._monotonic()) if self._has_news() else inf

    def hurry(self) -> None:
        """Tell of the last checkpoint now, however short the pause was: the gateway drains."""
        self._next = self._monotonic()

    def tend(self) -> tuple[str, ...]:
        """Queue deliveries of the last checkpoint if it is time; return their endpoints."""
        if not self._has_news() or self._monotonic() < self._next:
            return ()
        self._next = self._monotonic() + self._state.limits.announce_seconds
        try:
            told = self._tell()
        except (DatabaseGone, ClockWrong) as error:
            if not self._is_failing:
                log.error("a checkpoint could not be queued for webhooks; it is tried again", cause=str(error))
            self._is_failing = True
            return ()
        self._is_failing = False
        return told

    def _has_news(self) -> bool:
        made = self._state.checkpoint
        is_wanted = any(KIND in row.events for row in self._state.backlog.endpoints)
        return is_wanted and made is not None and made.size != self._last.size

    def _rest_of_pause(self) -> float:
        """Seconds left of the pause that the previous notary began; at most the whole pause, if the clock went back."""
        pause = self._state.limits.announce_seconds
        try:
            return min(max(self._last.time + pause - self._state.clock.now(), 0.0), pause)
        except ClockWrong:
            return pause

    def _tell(self) -> tuple[str, ...]:
        state, queued = self._state, Queued()
        with state.database.unit() as connection:
            note, self._last = newest_note(connection), _read(connection)
            if note is None:
                return ()
            made, named = Checkpoint.parse(parted(note)[0]), new("chk_")
            if made.size == self._last.size:  # a newer one was lost to the database, and will be made good
                return ()
            body = checkpoint_body(made, note, named, KIND, state.backlog.version)
            told = queue_deliveries(
                connection, state.backlog, queued, named, (KIND,), int(parse_iso(made.time) * 1000), lambda _: body
            )  # fmt: skip
            last = AnnouncedCheckpoint(made.size, state.clock.now())
            connection.execute(_WRITE, (META, msgspec.json.encode(last).decode()))
        state.backlog.follow(queued)
        self._last = last
        return told


def _read(connection: OpenTransaction) -> AnnouncedCheckpoint:
    row = connection.execute(_READ, (META,)).fetchone()
    try:
        return AnnouncedCheckpoint() if row is None else msgspec.json.decode(row[0], type=AnnouncedCheckpoint)
    except msgspec.MsgspecError:
        raise DatabaseGone("what is kept of the last checkpoint that was told makes no sense") from None
