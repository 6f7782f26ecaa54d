"""Has kept values erased that are older than `evidence.keep_days`, in the background.

Guarantees that calls wait for one unit of some calls' values at most, and that erasing takes a small part of the time.
Without a number of days nothing is looked at.
"""

import time
from collections.abc import Callable
from math import inf
from typing import Final

from ipc.process.clock import ClockWrong
from ipc.process.logs import log
from notary.database import DatabaseGone
from notary.operations.aging import DAY, EraseAged, has_aged
from notary.state import NotaryState
from notary.units.tasks import Task, TaskOutcome
from notary.upkeep.round_timer import RoundTimer

PAUSE: Final = 9.0
"""A pause lasts so many times as long as the unit before it, while there is more."""
ROUNDS: Final = 60
"""Rounds of a notary between two looks."""


class AgedValues:
    """The erasing of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._monotonic = monotonic
        self._timer = RoundTimer(monotonic)
        self._after = 0
        self._began = 0.0
        self._is_failing = False

    def patience(self) -> float:
        """Seconds until the next look; without end where values are kept for ever."""
        return self._timer.patience() if self._state.settings.evidence.keep_days else inf

    def due(self) -> Task | None:
        """The task that erases some of the oldest values, for a unit of its own."""
        days = self._state.settings.evidence.keep_days
        if not days or not self._timer.is_due():
            return None
        self._rest()
        try:
            before = self._state.clock.now() - days * DAY
            with self._state.database.unit(writes=False) as connection:
                if not has_aged(connection, before, self._after):
                    self._after = 0
                    return None
        except (ClockWrong, DatabaseGone) as error:
            self._fails(str(error))
            return None
        self._began = self._monotonic()
        return Task("", 0, EraseAged(before, days, self._after))

    def heard(self, outcome: TaskOutcome) -> None:
        """Take the outcome of the task."""
        if outcome.problem is not None:
            self._after = 0
            self._fails(outcome.cause or outcome.problem)
            return
        self._is_failing = False
        self._after = outcome.value.next or 0
        if outcome.value.next is not None:
            self._timer.set(PAUSE * (self._monotonic() - self._began))

    def _rest(self) -> None:
        self._timer.set(ROUNDS * self._state.limits.round_seconds)

    def _fails(self, cause: str) -> None:
        if not self._is_failing:
            log.warning("kept values that are too old could not be erased; it is tried again", cause=cause)
        self._is_failing = True
