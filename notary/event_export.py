"""How far the export of audit events has come: counts, and places in the chain, kept in a file beside the ledger.

The file keeps some earlier places, too, fewer of long ago: the export of a ledger that was put back goes on behind one
of them, so that no event since is missed; some events before it are exported again. An export is no evidence: the file
is not flushed, and after a crash the last events may be exported again. It is one line that is written over in place.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from ipc.operations.exporting import DROPPED, EXPORTED, SKIPPED, EventExport, EventPosition
from ipc.process.logs import log

FILE_NAME: Final = "exported-events"
START: Final = EventPosition()
"""Before the first event."""
_WARN_SECONDS: Final = 60.0
"""Between two warnings of one kind."""
_MOST_PLACES: Final = 32
_LINE_BYTES: Final = 4096
_decode = msgspec.json.Decoder(list[EventPosition]).decode
_encode = msgspec.json.Encoder().encode


class EventExports:
    """The export of one ledger. `path` None: the place is kept in memory alone."""

    def __init__(
        self, path: Path | None = None, opened_at: EventPosition = START, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.opened_at = opened_at
        """The end of the chain when this notary opened it."""
        self._path = path
        self.reached: list[EventPosition] = self._read()
        """The place up to which events are settled, and earlier ones, the newest first."""
        self.is_asked = False
        """An exporter has asked."""
        self._counts = dict.fromkeys((EXPORTED, DROPPED, SKIPPED), 0)
        self._changes = 0
        self._is_failing = False
        self._clock = clock
        self._warned_at: dict[str, float] = {}

    def begin(self) -> EventPosition:
        """The place where an exporter that has just started goes on; without one, the end of the chain when the notary
        opened it."""
        return self.reached[0] if self.reached else self.opened_at

    def note(self, settled: EventPosition, exported: int, dropped: int) -> None:
        """The exporter has settled events up to this place; the counts are its own since it started."""
        self._counts |= {EXPORTED: max(0, exported), DROPPED: max(0, dropped)}
        self.is_asked = True
        if settled not in self.reached[:1]:
            self.reached = _thinned([settled, *(one for one in self.reached if one.seq < settled.seq)])
            self._write()

    def skip(self, count: int, after: EventPosition) -> None:
        """Events that the ledger does not hold any more were not exported."""
        self._counts[SKIPPED] += count
        self._warn(
            "events are not exported: the ledger does not hold them any more", count=count, position=after.seq
        )  # fmt: skip

    def change(self, before: EventPosition, after: EventPosition) -> None:
        """The ledger is another one than that whose events were exported, or an earlier one."""
        self._changes += 1
        self._warn(
            "the ledger does not continue the events that were exported: some may be exported again",
            position=before.seq, begins_after=after.seq,
        )  # fmt: skip

    def _warn(self, line: str, **fields: object) -> None:
        """SECURITY: an exporter that was taken over could ask for any place: it must not fill the log."""
        now = self._clock()
        if now - self._warned_at.get(line, -_WARN_SECONDS) >= _WARN_SECONDS:
            self._warned_at[line] = now
            log.warning(line, **fields)

    def status(self, end: EventPosition) -> EventExport | None:
        """How far it has come, given the end of the chain; None before an exporter has asked."""
        if not self.is_asked:
            return None
        return EventExport(max(0, end.seq - self.reached[0].seq), dict(self._counts), self._changes)

    def _read(self) -> list[EventPosition]:
        if self._path is None:
            return []
        try:
            return _decode(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            cause = error.strerror if isinstance(error, OSError) else "it is no list of places"
            log.warning(
                "the place up to which events were exported can't be read: all events before this start are left out",
                file=str(self._path), cause=cause,
            )  # fmt: skip
            return []

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.pwrite(descriptor, _encode(self.reached).ljust(_LINE_BYTES - 1) + b"\n", 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._is_failing:
                log.warning(
                    "the place up to which events were exported can't be kept",
                    file=str(self._path),
                    cause=error.strerror,
                )
            self._is_failing = True
        else:
            self._is_failing = False


def _thinned(places: list[EventPosition]) -> list[EventPosition]:
    """The newest place and, of those at a distance from 1, 2, 4 and so on up to the next such number, the oldest."""
    by_distance = {(places[0].seq - one.seq).bit_length(): one for one in places}
    return list(by_distance.values())[:_MOST_PLACES]
