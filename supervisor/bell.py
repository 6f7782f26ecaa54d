"""Waiting for a condition without polling: whoever changes something rings, whoever waits looks again."""

from collections.abc import Callable

import trio


class Bell:
    """Many waiters, any condition."""

    def __init__(self) -> None:
        self._lot = trio.lowlevel.ParkingLot()

    def ring(self) -> None:
        """Something changed."""
        self._lot.unpark_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` holds; it is looked at once now and after each ring."""
        while not condition():
            await self._lot.park()
