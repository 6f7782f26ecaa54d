"""Log lines about a walk along the chain: its progress, every few seconds, and its end."""

import time
from collections.abc import Callable
from typing import Any

from contract.audit import ChainReport
from frontend.telemetry.logs import log

TELL_SECONDS = 5.0


class LogWalk:
    """One walk."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._told = clock()

    def hear(self, events: int) -> None:
        """Note the number of events walked, and log it if some seconds have passed since the last line."""
        now = self._clock()
        if now - self._told >= TELL_SECONDS:
            self._told = now
            seconds = now - self._began
            log.info(f"walking the chain: {events} events so far", events=events, per_second=round(events / seconds))

    def end(self, report: ChainReport) -> None:
        """The walk has ended: always told, since a broken chain is never a small matter."""
        seconds = round(self._clock() - self._began, 3)
        fields: dict[str, Any] = {"events": report.events_checked, "total": report.total_events, "seconds": seconds}
        if report.intact:
            log.info("the chain is intact", **fields)
        else:
            log.error("the chain is broken", broken_at=report.broken_at, reason=report.reason, **fields)
