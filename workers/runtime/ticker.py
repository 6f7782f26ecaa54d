"""The clock that ends a call: a thread that raises the engine's epoch once the call's deadline has passed.

Guarantees that guest code past its deadline traps within RESOLUTION_SECONDS and that a call never sees the end of the
one before it. The thread sleeps until the earliest deadline that it has been told; calls that end in time, and whose
deadlines come later than that, do not wake it.
"""

import threading
import time

from wasmtime import Engine

RESOLUTION_SECONDS = 0.02
"""Between two increments while a call goes on past its deadline."""
_NEVER = float("inf")
_STACK_BYTES = 256 * 1024

EPOCH_DEADLINE = 1
"""Ticks that a store is given: the first increment after `arm` ends the call."""


class EpochTicker:
    """One a process, started after the fork. `arm` before a call, `disarm` after it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._wake = threading.Semaphore(0)
        self._deadline: float | None = None
        self._wakes_at = _NEVER
        """When the thread wakes by itself; written by the thread, and by `arm` when it wakes it earlier."""

    def start(self) -> None:
        """Start the thread. It never ends before the process does."""
        previous = threading.stack_size(_STACK_BYTES)
        try:
            threading.Thread(target=self._run, name="epoch", daemon=True).start()
        finally:
            threading.stack_size(previous)

    def arm(self, deadline: float) -> None:
        """From `deadline` (time.monotonic) on, running guest code traps."""
        with self._lock:
            self._deadline = deadline
            if deadline < self._wakes_at:
                self._wakes_at = deadline
                self._wake.release()

    def disarm(self) -> None:
        """The call has ended: no epoch is raised on its account any more."""
        with self._lock:
            self._deadline = None

    def _run(self) -> None:
        while True:
            seconds = self._tick()
            self._wake.acquire(timeout=None if seconds == _NEVER else seconds)

    def _tick(self) -> float:
        """Raise the epoch if it is time; for how many seconds there is nothing to do."""
        with self._lock:
            # The increment happens under the lock: otherwise it could fall into the next call.
            now = time.monotonic()
            if self._deadline is None:
                self._wakes_at = _NEVER
                return _NEVER
            if now >= self._deadline:
                self._engine.increment_epoch()
                self._wakes_at = now + RESOLUTION_SECONDS
            else:
                self._wakes_at = self._deadline
            return self._wakes_at - now
