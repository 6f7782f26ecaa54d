"""Token buckets: how many requests of a class the gateway accepts per second (docs/contract.md, "Limits"), by holder.

Pure arithmetic over a monotonic clock, which all processes of a machine share; no task. `take` never waits for a token,
the caller answers 429. The state of a bucket may lie in memory that several fronts share, under a lock of microseconds.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from typing import Final

CELL: Final = 8
ROW: Final = 2
"""Cells of a holder: its name's hash, and what it has spent. The first row tells when all were counted."""


def drawn(spent: float, counted_at: float, now: float, rate: float, burst: float) -> tuple[float, float | None]:
    """Take one token of a bucket of which so many were spent by `counted_at`: how many are then, and None when there
    was one, otherwise the seconds until there will be (more than 0)."""
    # A clock that steps back must neither drain the bucket nor fill it twice.
    spent = max(0.0, spent - max(0.0, now - counted_at) * rate)
    if spent <= burst - 1:
        return spent + 1, None
    return spent, (spent + 1 - burst) / rate


class SharedBucket:
    """Gains `rate` tokens a second and holds at most `burst`, for all holders: one alone may take them all, and of
    several none takes more than an equal part as long as another one wants its own (max-min fairness).

    A holder keeps the tokens that it took before others came: a newcomer's first token is there at once, so more than
    `burst` may be out until the earlier ones have come back. At most `rate` a second come back, so in the long run no
    more are taken.

    `cells`: bytes of whole rows, all zeros at the start, and `lock` theirs; the bucket's own, unless other fronts use
    them too. They bound the number of distinct holders within a moment; one too many is refused.
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic, *,
        cells: memoryview | None = None, lock: AbstractContextManager[None] | None = None,
    ) -> None:  # fmt: skip
        if rate <= 0 or burst < 1:
            raise ValueError("a bucket needs a positive rate and room for one token")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        cells = memoryview(bytearray(ROW * CELL * 32)) if cells is None else cells
        self._names = cells.cast("Q")
        self._spent = cells.cast("d")
        self._rows = range(ROW, len(self._names), ROW)
        self._lock = lock or nullcontext()

    def take(self, holder: str) -> float | None:
        """Take one token for this holder: None when there was one, otherwise the seconds until there may be (more
        than 0)."""
        name = int.from_bytes(blake2b(holder.encode(), digest_size=CELL).digest(), "little")
        with self._lock:
            busy = self._drain()
            row = next((one for one in busy if self._names[one] == name), None)
            holders = len(busy) + (row is None)
            spent, part = (0.0 if row is None else self._spent[row + 1]), max(1.0, self._burst / holders)
            if spent > part - 1:
                return (spent + 1 - part) * holders / self._rate
            if row is None:
                row = next((one for one in self._rows if one not in busy), None)
                if row is None:
                    return 1 / self._rate
                self._names[row] = name
            self._spent[row + 1] = spent + 1
        return None

    def _drain(self) -> list[int]:
        """Give back what time has brought, equally; the rows of those of whom something is out still."""
        now, spent = self._clock(), self._spent
        # A clock that steps back must neither drain the bucket nor fill it twice.
        back = max(0.0, now - spent[0]) * self._rate
        spent[0] = max(now, spent[0])
        busy = sorted((row for row in self._rows if spent[row + 1] > 0), key=lambda row: spent[row + 1])
        for index, row in enumerate(busy):
            part = min(spent[row + 1], back / (len(busy) - index))
            spent[row + 1] -= part
            back -= part
        return [row for row in busy if spent[row + 1] > 0]
