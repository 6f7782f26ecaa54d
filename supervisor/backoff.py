"""How soon a process that ended gets its successor, and when it gets none. Pure: the caller brings the clock.

A process that had served is replaced at once, since a crash under load must not cost seconds; one that fails before it
serves is replaced ever more slowly; in a storm of crashes the least pause is a second. So restarts are bounded.
"""

import signal
from collections import deque

from ipc.exits import RESTART_IS_POINTLESS, Exit

MAX_FAILURES_AT_START = 5
"""A process that fails this often in a row before the gateway has ever served stops the gateway."""

STORM_SECONDS = 1.0
"""The least pause in a storm. Not longer: an attacker who can crash a process would otherwise gain downtime."""

_TRUSTED_WITH_EXIT_CODE = ("front", "notary", "template")


class Backoff:
    """Delays for one kind of process. Times are seconds of a monotonic clock."""

    def __init__(self, *, step: float = 0.25, ceiling: float = 10.0, burst: int = 20, window: float = 60.0) -> None:
        self._step = step
        self._ceiling = ceiling
        self._burst = burst
        self._window = window
        self._ends: deque[float] = deque(maxlen=burst + 1)
        self.failures = 0
        """Ends in a row before the process had served."""

    def delay(self, now: float, *, had_served: bool) -> float:
        """Seconds to wait before the successor of a process that ended `now`.

        The first restart is immediate. After the `burst`-th end within `window` seconds it is a storm.
        """
        self.failures = 0 if had_served else self.failures + 1
        self._ends.append(now)
        is_storm = len(self._ends) > self._burst and now - self._ends[0] < self._window
        least = STORM_SECONDS if is_storm else 0.0
        if self.failures <= 1:
            return least
        return max(least, min(self._ceiling, self._step * 2.0 ** min(self.failures - 2, 16)))


def fatal_exit(kind: str, status: int, *, is_starting: bool, failures: int) -> Exit | None:
    """The code with which the whole gateway stops because a process of `kind` ended, or None: replace it.

    `status` is an exit code or minus a signal. SECURITY: policy and workers run code of others, and
    a process that was taken over chooses its exit code; so theirs stop nothing once the gateway has served.
    """
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
