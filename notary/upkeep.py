"""What time brings: key files that changed, and what the store may forget. A little at a time, between two units."""

import time
from collections.abc import Callable

from ipc.clock import ClockWrong
from ipc.logs import log
from ipc.messages import FollowKeys
from notary.backends.sqlite import DatabaseGone
from notary.state import State
from notary.store import budgets, holds, proofs
from notary.unit import Task

ROUND_SECONDS = 1.0
KEEP_ENDED_SECONDS = 24 * 3600.0 + 3700.0
"""Counted from `expires_at`. A plan that was claimed in its last second may run for an hour (manifest
`resource_limits.timeout_seconds`), and its record is kept for a day after that."""


class Upkeep:
    """Rounds of one notary."""

    def __init__(self, state: State, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._monotonic = monotonic
        self._next = monotonic() + ROUND_SECONDS
        self._has_more = False

    def patience(self) -> float:
        """Seconds until the next round."""
        return 0.0 if self._has_more else max(0.0, self._next - self._monotonic())

    def due(self) -> Task | None:
        """Make a round if it is time; what is to be performed as a unit of its own then."""
        if self.patience():
            return None
        self._next = self._monotonic() + ROUND_SECONDS
        self._sweep()
        return Task("", 0, FollowKeys()) if self._state.signers.has_news() else None

    def _sweep(self) -> None:
        try:
            now = self._state.clock.now()
            with self._state.database.unit() as connection:
                self._has_more = any([
                    proofs.sweep(connection, now), budgets.sweep(connection, now),
                    holds.sweep(connection, now - KEEP_ENDED_SECONDS),
                ])  # fmt: skip
        except (DatabaseGone, ClockWrong) as error:
            self._has_more = False
            log.warning("what is over could not be forgotten", cause=str(error))
