"""Refusals of the edge in its log: a line for the first one at once, and then each minute while there are any."""

from collections import Counter
from typing import Final

import trio

from frontend.telemetry.logs import log

LOOK_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 60.0
MAX_ADDRESSES: Final = 1024
"""Addresses that are counted between two lines."""


class EdgeRefusals:
    """Counts since the last line, which says so."""

    def __init__(self, says: str = "the edge is busy") -> None:
        self._says = says
        self._of_reason: Counter[str] = Counter()
        self._of_address: Counter[str] = Counter()

    def count(self, reason: str, address: str) -> None:
        """A connection or a request of this address was refused, or cut for others."""
        self._of_reason[reason] += 1
        if address in self._of_address or len(self._of_address) < MAX_ADDRESSES:
            self._of_address[address] += 1

    async def watch(self) -> None:
        """Log them until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            if self._of_reason:
                self._tell()
                await trio.sleep(QUIET_SECONDS)

    def _tell(self) -> None:
        (most, count), *_ = self._of_address.most_common(1)
        log.warning(self._says, refused=dict(self._of_reason), most_of_address=most, of_that_address=count)
        self._of_reason.clear()
        self._of_address.clear()
