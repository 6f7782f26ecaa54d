"""Work on request bodies that are large: done in a thread, so that no other request waits for it.

Owns that thread's limit. Small bodies are worked on where they are, at no cost. Never changes what the work does: it
answers or raises as it would in place.
"""

from collections.abc import Callable
from typing import TypeVar

import trio

Answer = TypeVar("Answer")

LARGE_BYTES = 256 * 1024
"""A body beyond this size takes the loop longer to parse, validate or encode than other requests should wait."""
MAX_THREADS = 1
"""Threads take turns with the loop for the interpreter: each more would slow every other request down."""


class LargeBodies:
    """Large bodies are worked on one after the other; those that wait are bounded by admission."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(MAX_THREADS)

    async def run(self, size: int, work: Callable[[], Answer]) -> Answer:
        """What `work` on a body of `size` bytes answers or raises. It must touch nothing that the loop changes."""
        if size <= LARGE_BYTES:
            return work()
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
