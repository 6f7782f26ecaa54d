"""How many new subjects each cap surely still takes: what a count of all has shown, less those that came since.

So that not every call of a new subject walks all that are counted. Guarantees that no more are let in than a count
would let in; a cap that was full may seem so for FULL_SECONDS more.
"""

from collections.abc import Callable
from typing import Final

FULL_SECONDS: Final = 1.0
MAX_CAPS: Final = 1024
"""That are remembered; a reload can bring others."""

Cap = tuple[str, str, str, int]
"""A counter without its subject."""


class CapRoom:
    """The room of each cap of one notary's own store."""

    def __init__(self) -> None:
        self._left: dict[Cap, int] = {}
        self._full_at: dict[Cap, float] = {}

    def takes_one(self, cap: Cap, now: float, counted: Callable[[], int]) -> bool:
        """True if one more subject fits. `counted` counts how many still do."""
        left = self._left.pop(cap, 0)
        if not left:
            if 0 <= now - self._full_at.get(cap, -FULL_SECONDS) < FULL_SECONDS:
                return False
            left = counted()
        if max(len(self._left), len(self._full_at)) >= MAX_CAPS:
            self._left.clear()
            self._full_at.clear()
        if left <= 0:
            self._full_at[cap] = now
            return False
        if left > 1:
            self._left[cap] = left - 1
        return True
