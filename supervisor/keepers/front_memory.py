"""The memory that all fronts share: made once for the life of the gateway; the part of an ended front is cleared.

The supervisor reads nothing there. Counters of an ended front stay; its calls in flight are cleared.
"""

import os
import struct
import time

from ipc.channel import front_memory as at
from ipc.channel.front_memory import Layout, make_memory
from ipc.settings import Settings

_NUMBER = struct.Struct("<Q")


class FrontMemory:
    """Owns the memory of this gateway's fronts."""

    def __init__(self, settings: Settings) -> None:
        self._layout = Layout.of(settings)
        self.descriptor = make_memory(self._layout)
        """Copies of it are given to fronts."""
        os.pwrite(self.descriptor, struct.pack("<d", time.monotonic()), at.STARTED)

    def clear(self, number: int) -> None:
        """The front with this number has ended: it serves no more, has nothing in flight, and tells no start."""
        os.pwrite(self.descriptor, bytes(self._layout.held_bytes), self._layout.area(number).start)
        (telling,) = _NUMBER.unpack(os.pread(self.descriptor, _NUMBER.size, at.HAS_TOLD_START))
        if telling == number:
            os.pwrite(self.descriptor, _NUMBER.pack(0), at.HAS_TOLD_START)

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)
