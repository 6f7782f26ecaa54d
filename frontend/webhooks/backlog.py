"""How many deliveries wait for each endpoint, as far as this front knows; and what is dropped because too many do.

Guarantees that a receiver which is gone for days does not fill the disk that evidence needs. Counts are this front's
own between two looks at the outbox, so that the bound is kept to within what other fronts write meanwhile. A flood of
drops is a few lines in the log.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics

MAX_WAITING: Final = 10_000
"""Deliveries of one endpoint."""
SAY_AGAIN_SECONDS: Final = 60.0
"""Between two lines about the same endpoint."""


class Backlog:
    """Counts of one front; endpoints by name."""

    def __init__(self, names: Iterable[str], metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._waiting = dict.fromkeys(names, 0)
        self._dropped = dict.fromkeys(self._waiting, 0)
        self._say_at = dict.fromkeys(self._waiting, 0.0)

    def has_room(self, name: str) -> bool:
        """Count one more that is about to wait; False when it must be dropped, which is counted and said."""
        if self._waiting[name] < MAX_WAITING:
            self._waiting[name] += 1
            return True
        self._metrics.webhook_drops.add(name, "outbox_full")
        self._dropped[name] += 1
        now = self._monotonic()
        if now >= self._say_at[name]:
            log.warning("webhooks are dropped: too many wait", endpoint=name, dropped=self._dropped[name])
            self._dropped[name], self._say_at[name] = 0, now + SAY_AGAIN_SECONDS
        return False

    def less(self, name: str) -> None:
        """One does not wait any more."""
        self._waiting[name] = max(0, self._waiting[name] - 1)

    def found(self, waiting: Mapping[str, int]) -> None:
        """What the outbox says: everything that is not there has nothing waiting."""
        self._waiting = {name: waiting.get(name, 0) for name in self._waiting}
