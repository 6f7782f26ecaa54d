"""Token buckets: how many requests of a class one process accepts per second (docs/contract.md, "Limits").

Pure arithmetic over a monotonic clock, no task and no lock: `take` never waits, the caller answers 429.
"""

import time
from collections.abc import Callable


class TokenBucket:
    """Holds at most `burst` tokens and gains `rate` tokens a second; starts full."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError("a bucket needs a positive rate and room for one token")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    def take(self) -> float | None:
        """Take one token: None when there was one, otherwise the seconds until there will be (more than 0)."""
        now = self._clock()
        # A clock that steps back must neither drain the bucket nor fill it twice.
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled_at) * self._rate)
        self._filled_at = max(now, self._filled_at)
        if self._tokens >= 1:
            self._tokens -= 1
            return None
        return (1 - self._tokens) / self._rate

    def give_back(self) -> None:
        """Undo one `take`."""
        self._tokens = min(self._burst, self._tokens + 1)
