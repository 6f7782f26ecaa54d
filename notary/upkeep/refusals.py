"""When the events of counted refusals are due (notary/ledger/refused.py): looked for once a second, and at the end."""

import time
from collections.abc import Callable

from ipc.process.clock import ClockWrong
from notary.ledger.refused import is_due
from notary.operations.refusing import TellRefusals
from notary.state import NotaryState
from notary.units.tasks import Task
from notary.upkeep.round_timer import RoundTimer


class CountedRefusals:
    """Those of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._timer = RoundTimer(monotonic)

    def patience(self) -> float:
        """Seconds until the next look."""
        return self._timer.patience()

    def due(self) -> Task | None:
        """The task that writes what is due, as a unit of its own."""
        if not self._timer.is_due():
            return None
        self._timer.set(self._state.limits.round_seconds)
        try:
            now = self._state.clock.now()
        except ClockWrong:
            return None
        return Task("", 0, TellRefusals()) if any(is_due(one, now) for one in self._state.refusals.values()) else None

    def at_end(self) -> Task | None:
        """The task that writes all that was counted."""
        has_counted = any(one.count for one in self._state.refusals.values())
        return Task("", 0, TellRefusals(is_end=True)) if has_counted else None
