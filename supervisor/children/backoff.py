"""How soon a process that ended gets its successor, and when it gets none. Pure: the caller brings clock and dice.

A process that had served is replaced at once, since a crash under load must not cost seconds; one that fails before it
serves is replaced ever more slowly; in a storm of crashes the least pause is a second. So restarts are bounded. Pauses
are shortened by up to a quarter, so that what failed together does not come back together. A process that has served
for a whole minute was healthy: what was before it is forgotten.
"""

import random
import signal
from collections import deque
from collections.abc import Callable

from ipc.process.exits import RESTART_IS_POINTLESS, Exit
from ipc.process.roles import EXPORTER

MAX_FAILURES_AT_START = 5
"""A process that fails this often in a row before the gateway has ever served stops the gateway."""

STORM_SECONDS = 1.0
"""The least pause in a storm. Not longer: an attacker who can crash a process would otherwise gain downtime."""

LOOP_FAILURES = 3
"""A process that fails this often in a row before it serves is in a crash loop."""

HEALTHY_SECONDS = 60.0
"""A process that has served this long is healthy."""

_JITTER = 0.25
_TRUSTED_WITH_EXIT_CODE = ("front", "notary", "template")


class Backoff:
    """Delays for one kind of process. Times are seconds of a monotonic clock."""

    def __init__(
        self, *, step: float = 0.25, ceiling: float = 10.0, burst: int = 20, window: float = 60.0,
        dice: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """`dice` gives numbers from 0 to 1."""
        self._step = step
        self._ceiling = ceiling
        self._burst = burst
        self._window = window
        self._dice = dice
        self._ends: deque[float] = deque(maxlen=burst + 1)
        self.failures = 0
        """Ends in a row before the process had served."""
        self.is_storm = False
        """There were more than `burst` ends within `window` seconds."""

    @property
    def is_loop(self) -> bool:
        """A crash loop: too many failures in a row, or a storm."""
        return self.is_storm or self.failures >= LOOP_FAILURES

    def delay(self, now: float, *, had_served: bool, lived: float = 0.0) -> float:
        """Seconds to wait before the successor of a process that ended `now` and had lived for `lived` seconds.

        The first restart is immediate. After the `burst`-th end within `window` seconds it is a storm.
        """
        self.failures = 0 if had_served else self.failures + 1
        if had_served and lived >= HEALTHY_SECONDS:
            self._ends.clear()
        self._ends.append(now)
        self.is_storm = len(self._ends) > self._burst and now - self._ends[0] < self._window
        least = STORM_SECONDS if self.is_storm else 0.0
        if self.failures <= 1:
            return least
        pause = min(self._ceiling, self._step * 2.0 ** min(self.failures - 2, 16))
        return max(least, pause * (1.0 - _JITTER * self._dice()))


def fatal_exit(kind: str, status: int, *, is_starting: bool, failures: int) -> Exit | None:
    """The code with which the whole gateway stops because a process of `kind` ended, or None: replace it.

    `status` is an exit code or minus a signal. SECURITY: policy and workers run code of others, and
    a process that was taken over chooses its exit code; so theirs stop nothing once the gateway has served. The
    exporter's stop nothing at any time: a start waits for none.
    """
    if kind == EXPORTER:
        return None
    if kind == "front" and status == Exit.CONFIG and not is_starting:
        # Files that are being edited: other fronts serve, and this one tries again until they will do.
        return None
    if status in RESTART_IS_POINTLESS and (is_starting or kind in _TRUSTED_WITH_EXIT_CODE):
        return Exit(status)
    if not is_starting:
        return None
    if status == Exit.UNAVAILABLE:
        return Exit.UNAVAILABLE
    return Exit.FAILED if failures >= MAX_FAILURES_AT_START else None


def reason_of(status: int) -> str:
    """An exit code's name, or a signal's: `RECYCLED`, `SIGKILL`, `exit 3`."""
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    try:
        return Exit(status).name
    except ValueError:
        return f"exit {status}"
