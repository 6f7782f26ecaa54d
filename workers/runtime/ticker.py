"""The clock that ends a call: a thread that raises the engine's epoch once the call's deadline has passed.

Guarantees that guest code past its deadline traps within RESOLUTION_SECONDS and that a call never sees the end of the
one before it. Costs a wake-up each RESOLUTION_SECONDS while calls come, and nothing once they don't.
"""

import threading
import time

from wasmtime import Engine

RESOLUTION_SECONDS = 0.02
_PARK_AFTER = 10
"""Idle wake-ups before the thread waits for the next call instead of for time."""
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
        self._is_parked = False

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
            if self._is_parked:
                self._is_parked = False
                self._wake.release()

    def disarm(self) -> None:
        """The call has ended: no epoch is raised on its account any more."""
        with self._lock:
            self._deadline = None

    def _run(self) -> None:
        idle = 0
        while True:
            self._wake.acquire(timeout=RESOLUTION_SECONDS)
            with self._lock:
                # The increment happens under the lock: otherwise it could fall into the next call.
                if self._deadline is None:
                    idle += 1
                elif time.monotonic() >= self._deadline:
                    self._engine.increment_epoch()
                else:
                    idle = 0
                self._is_parked = self._deadline is None and idle >= _PARK_AFTER
                must_park = self._is_parked
            if must_park:
                idle = 0
                self._wake.acquire()
