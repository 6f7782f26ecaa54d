"""How much memory a policy may take: a thread that looks while the engine works, and ends the process beyond the bound.

A limit of the kernel can't hold it: the engine's allocator reserves hundreds of gigabytes of addresses at once. The
engine is called without the interpreter's lock, so the thread runs beside it. The peak counts, which never falls.
"""

import os
import resource
import sys
import threading
import time
from types import TracebackType

from ipc.process.exits import Exit

MOST_BYTES = 512 * 1024 * 1024
"""More than the largest policy takes while another one is in force, by a factor of two."""
LOOK_SECONDS = 0.02
_IDLE_LOOKS = 50
"""The thread goes on looking for so long after the work, so that a busy process need not wake it for each question."""


class MemoryBound:
    """Around what may take memory. Counts from what the process has when this is made."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = _peak() + most_bytes
        self._said = f"policy: it took more than {most_bytes >> 20} MiB of memory, and is ended\n"
        self._is_working = False
        self._has_work = threading.Event()

    def start(self) -> None:
        """Start the thread, while threads can be started."""
        threading.Thread(target=self._run, name="memory", daemon=True).start()

    def __enter__(self) -> None:
        self._is_working = True
        self._has_work.set()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_working = False

    def _run(self) -> None:
        while True:
            self._has_work.wait()
            idle = 0
            while idle < _IDLE_LOOKS:
                time.sleep(LOOK_SECONDS)
                if _peak() > self._most:
                    os.write(sys.stderr.fileno(), self._said.encode())
                    os._exit(Exit.MEMORY)
                idle = 0 if self._is_working else idle + 1
            self._has_work.clear()
            if self._is_working:  # it began between the last look and now
                self._has_work.set()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
