"""Clients that hold themselves below the rates of the contract, so that no test depends on how slow its machine is."""

import threading
import time
from collections import deque


class Pace:
    """Lets through `most` requests in any second, however fast they come; for threads. Each starts in its turn."""

    def __init__(self, most: int) -> None:
        self._starts: deque[float] = deque(maxlen=most)
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when one more request may go."""
        with self._lock:
            start = time.monotonic()
            if len(self._starts) == self._starts.maxlen:
                start = max(start, self._starts[0] + 1)
            self._starts.append(start)
        seconds = start - time.monotonic()
        if seconds > 0:
            time.sleep(seconds)

    def rest(self) -> None:
        """Return when no request has gone for a second: for who needs the whole of what a second allows."""
        with self._lock:
            free = self._starts[-1] + 1 if self._starts else 0.0
        time.sleep(max(0.0, free - time.monotonic()))


class Paces:
    """The common rate of all clients of one gateway: four fifths of each rate, the rest is for programs beside them.

    One agent's calls have a pace of their own where they come in a loop: `session`, a fresh one for each lease.
    """

    def __init__(self) -> None:
        self.leases, self.writes, self.reads = Pace(40), Pace(16), Pace(80)

    @staticmethod
    def session() -> Pace:
        """For the requests of one lease."""
        return Pace(160)
