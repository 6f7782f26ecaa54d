"""How fast a long walk goes: as fast as it can while nothing is written, and with long rests while calls are written.

A walk shares caches, memory and cores with the processes that serve calls, whatever its niceness is, and a database
that is read without a pause keeps its log from being cut. Guarantees that a walk comes to its end: after HURRY_SECONDS
it rests no more.
"""

import time
from collections.abc import Callable

from ipc.limits import READER_SECONDS
from notary.database import OpenTransaction
from notary.reading.source import written_state

REST = 4.0
"""A rest takes this many times as long as a step."""
LONGEST_REST_SECONDS = 0.5
"""A step that took longer than that calls for had to wait itself, for the processor or for a disk."""
HURRY_SECONDS = READER_SECONDS / 2


class Pace:
    """The pace of one walk over this connection. `clock` is in seconds and never goes back."""

    def __init__(
        self, connection: OpenTransaction, clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._connection, self._clock, self._sleep = connection, clock, sleep
        self._state = written_state(connection)
        self._hurry_at = clock() + HURRY_SECONDS
        self._began = clock()

    def rest(self) -> None:
        """After each step, outside of a transaction. Raises what the connection raises."""
        now, before = self._clock(), self._state
        self._state = written_state(self._connection)
        if self._state != before and now < self._hurry_at:
            self._sleep(min(REST * (now - self._began), LONGEST_REST_SECONDS))
        self._began = self._clock()
