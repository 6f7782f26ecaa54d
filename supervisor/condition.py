"""Waiting for a condition without polling: a change notifies, each waiter looks again."""

from collections.abc import Callable

import trio


class Condition:
    """Many waiters, any condition."""

    def __init__(self) -> None:
        self._lot = trio.lowlevel.ParkingLot()

    def notify_all(self) -> None:
        """Something changed."""
        self._lot.unpark_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` holds; it is looked at once now and after each change."""
        while not condition():
            await self._lot.park()
