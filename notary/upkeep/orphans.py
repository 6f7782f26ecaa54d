"""Gives up deliveries to webhook endpoints that are not configured any more, a few at a time between units.

Guarantees that no delivery waits for ever for an endpoint of an earlier configuration, with or without a deliverer.
Disabled endpoints keep their deliveries. In a ledger that gateways share, an endpoint that is not configured here may
be another gateway's: a delivery to it is given up once it has been due for SHARED_SECONDS. The log shows names of
endpoints, which come from a configuration.
"""

import time
from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Final

from ipc.process.clock import ClockWrong
from ipc.process.logs import log
from notary.database import DatabaseGone
from notary.ledger.outbox import WHENEVER, next_due, waiting
from notary.operations.delivering import Orphaned
from notary.state import NotaryState
from notary.units.tasks import Task, TaskOutcome
from notary.upkeep.round_timer import RoundTimer

AGAIN_SECONDS: Final = 1.0
"""After the database or the clock has failed."""
SHARED_SECONDS: Final = 7 * 86_400.0
LOOK_SECONDS: Final = 3600.0
"""Between two rounds, in a ledger that gateways share."""


class Orphans:
    """Those of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._timer = RoundTimer(monotonic)
        self._given_up: Counter[str] = Counter()
        self._is_failing = False

    def look_again(self) -> None:
        """Other endpoints are configured."""
        self._timer.set(0.0)

    def patience(self) -> float:
        """Seconds until the next round."""
        return self._timer.patience()

    def due(self) -> Task | None:
        """The task that is due now, for a unit of its own: some deliveries of one endpoint."""
        if not self._timer.is_due():
            return None
        try:
            due_until = self._due_until()
            with self._state.database.unit(writes=False) as connection:
                unknown = waiting(connection).keys() - self._state.backlog.configured
                gone = {name for name in unknown if (next_due(connection, name) or WHENEVER) <= due_until}
        except (DatabaseGone, ClockWrong) as error:
            self._fails(str(error))
            return None
        for name in self._given_up.keys() - gone:
            count = self._given_up.pop(name)
            log.warning("webhooks were given up: their endpoint is not configured any more", endpoint=name, count=count)
        if not gone:
            self._timer.set(LOOK_SECONDS if self._state.database.is_shared else inf)
            self._is_failing = False
            return None
        return Task("", 0, Orphaned(min(gone), due_until))

    def heard(self, task: Task, outcome: TaskOutcome) -> None:
        """Take the outcome of the task."""
        if outcome.problem is not None:
            self._fails(outcome.cause or outcome.problem)
            return
        assert isinstance(task.operation, Orphaned), "nothing else is due"
        self._given_up[task.operation.endpoint] += outcome.value

    def _due_until(self) -> int:
        """Deliveries that were due by then have no endpoint any more (milliseconds). Raises ClockWrong."""
        if not self._state.database.is_shared:
            return WHENEVER
        return int((self._state.clock.now() - SHARED_SECONDS) * 1000)

    def _fails(self, cause: str) -> None:
        self._timer.set(AGAIN_SECONDS)
        if not self._is_failing:
            log.warning("webhooks of endpoints that are gone could not be given up; it is tried again", cause=cause)
        self._is_failing = True
