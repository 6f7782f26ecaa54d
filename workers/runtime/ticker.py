"""The clock that ends calls: a thread that raises the engine's epoch once the deadline of one of them has passed.

Guarantees that guest code past its deadline traps within RESOLUTION_SECONDS. An epoch that is raised for one call does
not end another: each store looks at its own deadline (workers/runtime/deadline.py). The thread sleeps until the
earliest deadline that it has been told; calls that end in time, and whose deadlines come later than that, do not wake
it.
"""

import threading
import time

from wasmtime import Engine

RESOLUTION_SECONDS = 0.02
"""Between two increments while a call goes on past its deadline."""
_NEVER = float("inf")
_STACK_BYTES = 256 * 1024


class EpochTicker:
    """One a process, started after the fork. `arm` before a call, `disarm` after it; any thread may call both."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._wake = threading.Semaphore(0)
        self._deadlines: list[float] = []
        """Deadlines of the calls that run."""
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
            self._deadlines.append(deadline)
            if deadline < self._wakes_at:
                self._wakes_at = deadline
                self._wake.release()

    def disarm(self, deadline: float) -> None:
        """A call with this deadline has ended: no epoch is raised on its account any more."""
        with self._lock:
            self._deadlines.remove(deadline)

    def _run(self) -> None:
        while True:
            seconds = self._tick()
            self._wake.acquire(timeout=None if seconds == _NEVER else seconds)

    def _tick(self) -> float:
        """Raise the epoch if it is time; for how many seconds there is nothing to do."""
        with self._lock:
            now = time.monotonic()
            if not self._deadlines:
                self._wakes_at = _NEVER
                return _NEVER
            earliest = min(self._deadlines)
            if now >= earliest:
                self._engine.increment_epoch()
                self._wakes_at = now + RESOLUTION_SECONDS
            else:
                self._wakes_at = earliest
            return self._wakes_at - now
