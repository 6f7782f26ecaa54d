"""Counts calls by hour while the notary serves (notary/ledger/activity.py), after each checkpoint.

Events of an earlier version are counted in the background, a small part of the time. Guarantees that calls wait for one
slice at most, and that a count which fails stops nothing.
"""

import time
from collections.abc import Callable
from math import inf
from typing import Final

from ipc.process.clock import ClockWrong
from ipc.process.lasting_problem import LastingProblem
from ipc.process.logs import log
from notary.database import DatabaseGone
from notary.ledger.activity import count_slice, forget_before
from notary.state import NotaryState
from notary.tree.checkpoint import Checkpoint

SLICE_EVENTS: Final = 500
PAUSE: Final = 9.0
"""A pause lasts so many times as long as the slice before it, while there are events of an earlier version."""
FORGET_SECONDS: Final = 3600.0


class Counting:
    """The counting of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._monotonic = monotonic
        self._counted: Checkpoint | None = None
        """The checkpoint whose events are counted."""
        self._has_more = True
        self._next = monotonic() + state.limits.round_seconds
        self._forget_at = monotonic()
        self._problem = LastingProblem()

    def patience(self) -> float:
        """Seconds until the next slice; without end while there is nothing to count."""
        return max(0.0, self._next - self._monotonic()) if self._is_behind() else inf

    def tend(self) -> None:
        """Count a slice if it is time."""
        began = self._monotonic()
        if not self._is_behind() or began < self._next:
            return
        checkpoint = self._state.checkpoint
        try:
            has_erased = False
            with self._state.database.unit(is_durable=False) as connection:
                counted = count_slice(connection, SLICE_EVENTS, is_file=not self._state.database.is_shared)
                if began >= self._forget_at:
                    has_erased = forget_before(connection, self._state.clock.now())
                    self._forget_at = began + FORGET_SECONDS
            self._state.has_erased = self._state.has_erased or has_erased
        except (DatabaseGone, ClockWrong) as error:
            if self._problem.is_new(str(error)):
                log.warning("calls could not be counted for the summary", cause=str(error))
            self._next = self._monotonic() + self._state.limits.round_seconds
            return
        self._problem.end()
        self._has_more = counted.events == SLICE_EVENTS
        if not self._has_more:
            self._counted = checkpoint
        ended = self._monotonic()
        self._next = ended + PAUSE * (ended - began)

    def _is_behind(self) -> bool:
        """True if events may have come since the last slice."""
        return self._has_more or self._counted is not self._state.checkpoint
