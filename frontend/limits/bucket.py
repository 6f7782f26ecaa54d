"""Token buckets: how many requests of a class the gateway accepts per second (docs/contract.md, "Limits").

Pure arithmetic over a monotonic clock, which all processes of a machine share; no task. `take` never waits for a token,
the caller answers 429. What has been spent may lie where several fronts take from it, under a lock of microseconds.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


def drawn(spent: float, counted_at: float, now: float, rate: float, burst: float) -> tuple[float, float | None]:
    """Take one token of a bucket of which so many were spent by `counted_at`: how many are then, and None when there
    was one, otherwise the seconds until there will be (more than 0)."""
    # A clock that steps back must neither drain the bucket nor fill it twice.
    spent = max(0.0, spent - max(0.0, now - counted_at) * rate)
    if spent <= burst - 1:
        return spent + 1, None
    return spent, (spent + 1 - burst) / rate


class TokenBucket:
    """Holds at most `burst` tokens and gains `rate` tokens a second; starts full.

    `cells`: two numbers, 0 at the start, and `lock` theirs: the bucket's own, unless other fronts use them too.
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic,
        cells: "memoryview[float] | None" = None, lock: AbstractContextManager[None] | None = None,
    ) -> None:  # fmt: skip
        if rate <= 0 or burst < 1:
            raise ValueError("a bucket needs a positive rate and room for one token")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._cells = memoryview(bytearray(16)).cast("d") if cells is None else cells
        self._lock = lock or nullcontext()

    def take(self) -> float | None:
        """Take one token: None when there was one, otherwise the seconds until there will be (more than 0)."""
        cells = self._cells
        with self._lock:
            now = self._clock()
            cells[0], seconds = drawn(cells[0], cells[1], now, self._rate, self._burst)
            cells[1] = max(now, cells[1])
        return seconds

    def give_back(self) -> None:
        """Undo one `take`."""
        with self._lock:
            self._cells[0] = max(0.0, self._cells[0] - 1)
