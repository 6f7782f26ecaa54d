"""Operations that only read for a caller: performed in slices of time, in turns by who asks.

A read may be large, and the notary does one thing at a time. Guarantees that calls wait for SLICE_SECONDS of reads and
the one read under way, however many wait, and that a caller which reads much waits for itself: its reads are charged by
the time that they took (ipc/channel/fair_queue.py). A bounded number waits; the rest is performed at once, as it always
was.
"""

import time
from collections.abc import Callable
from typing import Final

from ipc.channel.fair_queue import FairQueue
from ipc.limits import MAX_OPERATIONS
from notary.operations.table import PACED
from notary.units.tasks import Task

SLICE_SECONDS: Final = 0.005


class PacedReads:
    """Reads that wait. `perform` performs one and answers it. `clock` is in seconds and never goes back."""

    def __init__(self, perform: Callable[[list[Task]], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._perform = perform
        self._clock = clock
        self._waiting: FairQueue[Task] = FairQueue()

    def __len__(self) -> int:
        return len(self._waiting)

    def takes(self, task: Task) -> bool:
        """True when the task waits here from now on."""
        if type(task.operation) not in PACED or len(self._waiting) >= MAX_OPERATIONS:
            return False
        self._waiting.put((getattr(task.operation, "asker", ""),), task)
        return True

    def perform_slice(self) -> bool:
        """Perform what waits, until a slice of time is over. False when nothing waited."""
        if not self._waiting:
            return False
        began = ended = self._clock()
        while ended - began < SLICE_SECONDS and (following := self._waiting.take()) is not None:
            owners, task = following
            self._perform([task])
            before, ended = ended, self._clock()
            self._waiting.charge(owners, ended - before)
        return True
