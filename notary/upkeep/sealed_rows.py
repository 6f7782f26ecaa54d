"""Deletes rows of sealed segments while the notary serves, a slice at a time (notary/sealing/clearing.py).

Guarantees that calls wait for one slice at most, that a pause between two slices is longer than a slice, and that the
next notary goes on where this one ended.
"""

import time
from collections.abc import Callable
from math import inf

from ipc.process.lasting_problem import LastingProblem
from ipc.process.logs import log
from notary.database import DatabaseGone
from notary.ledger.cut import read_cleared
from notary.sealing.clearing import SliceSize, clear_slice
from notary.state import NotaryState

PAUSE = 2.0
"""A pause lasts so many times as long as the slice before it."""


class SealedRows:
    """The deletion of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._monotonic = monotonic
        self._size = SliceSize()
        self._next = monotonic()
        self._has_looked = False
        self._count = 0
        self._problem = LastingProblem()

    def begin(self) -> None:
        """The ledger was cut: there may be rows to delete."""
        self._has_looked = False
        self._next = self._monotonic()

    def patience(self) -> float:
        """Seconds until the next slice; without end while there is nothing to delete."""
        return max(0.0, self._next - self._monotonic())

    def tend(self) -> None:
        """Delete a slice if it is time."""
        began = self._monotonic()
        if began < self._next:
            return
        database = self._state.database
        try:
            if not self._has_looked:
                with database.unit(writes=False) as connection:
                    has_rows = read_cleared(connection) is not None
                self._has_looked = True
                self._problem.end()
                if not has_rows:
                    self._next = inf
                    return
            with database.unit(is_durable=False) as connection:
                done = clear_slice(connection, self._size.rows, is_file=not database.is_shared)
        except DatabaseGone as error:
            if self._problem.is_new(str(error)):
                log.warning("sealed rows could not be deleted", cause=str(error))
            self._next = self._monotonic() + self._state.limits.round_seconds
            return
        self._problem.end()
        ended = self._monotonic()
        self._size.took(ended - began)
        self._state.has_erased = self._state.has_erased or done.has_kept
        self._count += done.deleted
        self._next = ended + PAUSE * (ended - began) if done.left else inf
        if not done.left and self._count:
            log.info("sealed rows are deleted", rows=self._count)
            self._count = 0
