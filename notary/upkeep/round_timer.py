"""When the next round of a regular job of the notary is due."""

import time
from collections.abc import Callable


class RoundTimer:
    """The timer of one job; the first round is due at once."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._next = 0.0

    def patience(self) -> float:
        """Seconds until the next round."""
        return max(0.0, self._next - self._monotonic())

    def is_due(self) -> bool:
        """True if the next round is due."""
        return self._monotonic() >= self._next

    def set(self, seconds: float) -> None:
        """Have the next round due in so many seconds; infinity for none."""
        self._next = self._monotonic() + seconds
