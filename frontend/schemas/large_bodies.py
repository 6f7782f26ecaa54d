"""Work on request bodies that are large: done in a thread, so that no other request waits for it, and in turns.

Owns that thread's limit. Small bodies are worked on where they are, at no cost. The processor time that a large one
takes is charged to its principal and its session, and the caller charged least is next: a caller with expensive bodies
waits for itself. Never changes what the work does: it answers or raises as it would in place.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import trio

from frontend.limits.rates import TooMuch
from frontend.limits.turns import Owners, Turns

Answer = TypeVar("Answer")

LARGE_BYTES = 8 * 1024
"""A body that costs more than this may take the loop longer to parse, validate and encode than other requests should
wait. See `cost_of`."""
CONTAINER_BYTES = 32
"""The bytes of text that cost as much as one object or array: 8 kB of lists of empty lists take 5 ms."""
MAX_THREADS = 1
"""Threads take turns with the loop for the interpreter: each more would slow every other request down."""
WAIT_SECONDS = 10.0


def cost_of(body: bytes) -> int:
    """The cost of work on this JSON text, in bytes of plain text; found without parsing it."""
    return max(len(body), CONTAINER_BYTES * (body.count(b"[") + body.count(b"{")))


class LargeBodies:
    """Large bodies are worked on one after the other; those that wait are bounded by admission, and in time."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._limiter = trio.CapacityLimiter(MAX_THREADS)
        self._turns = Turns()
        self._wait_seconds = wait_seconds

    async def run(self, cost: int, owners: Owners, work: Callable[[], Answer]) -> Answer:
        """Answer or raise what `work` on a body of this cost does. It must touch nothing that the loop changes.

        `owners` are principal and session. Raises TooMuch rate_limit_exceeded where their turn does not come in time.
        """
        if cost <= LARGE_BYTES:
            return work()
        turn, used = self._turns.enter(owners), 0.0
        try:
            with trio.move_on_after(self._wait_seconds):
                await turn.has_come.wait()
            if not turn.has_come.is_set():
                raise TooMuch("rate_limit_exceeded", cause="others with large bodies have used less processor time")
            began = time.perf_counter()
            spent: list[float] = []
            try:
                return await trio.to_thread.run_sync(
                    _measured, work, spent, abandon_on_cancel=True, limiter=self._limiter
                )
            finally:
                used = spent[0] if spent else time.perf_counter() - began  # who has left is charged for what goes on
        finally:
            self._turns.leave(turn, used)


def _measured(work: Callable[[], Answer], spent: list[float]) -> Answer:
    """In the thread: what the work answers, and the processor time that it took."""
    began = time.thread_time()
    try:
        return work()
    finally:
        spent.append(time.thread_time() - began)
