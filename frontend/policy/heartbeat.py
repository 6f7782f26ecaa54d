"""When a policy engine last proved that it lives: a remembered decision counts only for a second after that.

Holds two readings of the clock and does no I/O: each engine asks its own process or server, and notes here what came.
An engine that stands still allows nothing after that second, whatever it decided before.
"""

import math

import trio

FRESH_SECONDS = 1.0
"""How long after a sign of life a remembered decision counts."""


class Heartbeat:
    """The signs of life of one engine. Begins without any sign of life."""

    __slots__ = ("_proved_at", "_wanted_at")

    def __init__(self) -> None:
        self._proved_at = -math.inf
        self._wanted_at = -math.inf

    def counts(self) -> bool:
        """Whether a remembered decision counts now. Notes that one was wanted."""
        now = self._wanted_at = trio.current_time()
        return now - self._proved_at < FRESH_SECONDS

    def prove(self, asked_at: float) -> None:
        """Note an answer. It proves life at the time of its question: how long it lay unread here is not known."""
        self._proved_at = max(self._proved_at, asked_at)

    @property
    def is_wanted(self) -> bool:
        """Whether remembered decisions are in use now, so that signs of life should come often."""
        return trio.current_time() - self._wanted_at < FRESH_SECONDS
