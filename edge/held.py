"""Bytes that the edge has in memory for its clients: bodies of requests, and answers until they are sent."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import trio

MAX_HELD: Final = 64 * 1024 * 1024
"""Bytes of all request bodies, and as many of all answers."""
MAX_HELD_OF_ADDRESS: Final = MAX_HELD // 4
ROOM_SECONDS: Final = 5.0
MIN_WAIT_SECONDS: Final = 1.0
"""An answer that has waited for less is not cut: its client may be taking it."""


class HeldBytes:
    """Bytes in memory, bounded for each address and for all together."""

    def __init__(self) -> None:
        self.of_address: Counter[str] = Counter()
        self._all = 0

    def hold(self, address: str, size: int) -> bool:
        """Count bytes; False where its address, or all together, would have too many."""
        if self.is_full_for(address, size) or self._all + size > MAX_HELD:
            return False
        self._all += size
        self.of_address[address] += size
        return True

    def is_full_for(self, address: str, size: int) -> bool:
        """True if its address would have too many."""
        return self.of_address[address] + size > MAX_HELD_OF_ADDRESS

    def let_go(self, address: str, size: int) -> None:
        """They are needed no more."""
        self._all -= size
        self.of_address[address] -= size
        if self.of_address[address] <= 0:
            del self.of_address[address]


class AnswerBytes(HeldBytes):
    """Bytes of answers. Where there is no room, the answer that has waited longest for its client is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[WholeAnswer, float] = {}
        """Answers that are being sent, in the order in which they began to, and when."""
        self._hopeful = trio.lowlevel.ParkingLot()

    async def hold_in_time(self, address: str, size: int) -> None:
        """Count bytes, once there is room. Raises trio.TooSlowError."""
        if self.hold(address, size):
            return
        with trio.fail_after(ROOM_SECONDS):
            while not self.hold(address, size):
                slow = self._slow(address, size)
                if slow is not None:
                    slow.cut()
                    continue
                with trio.move_on_after(MIN_WAIT_SECONDS):
                    await self._hopeful.park()

    def let_go(self, address: str, size: int) -> None:
        """They are needed no more."""
        super().let_go(address, size)
        self._hopeful.unpark_all()

    def _slow(self, address: str, size: int) -> "WholeAnswer | None":
        """One of the address itself where that has too many, else one of the address that has most."""
        latest = trio.current_time() - MIN_WAIT_SECONDS
        late = [one for one, since in self.waiting.items() if since <= latest]
        if self.is_full_for(address, size):
            late = [one for one in late if one.address == address]
        return max(late, key=lambda one: self.of_address[one.address], default=None)


class WholeAnswer:
    """An answer in memory, from its first part until its client has taken it. `cut_client` ends the client's
    connection."""

    def __init__(self, memory: AnswerBytes, address: str, cut_client: Callable[[], None]) -> None:
        self._memory = memory
        self._cut_client = cut_client
        self._held = 0
        self.address = address
        self.parts: list[bytes] = []

    async def keep(self, part: bytes) -> None:
        """Keep a part. Raises trio.TooSlowError where there is no room."""
        await self._memory.hold_in_time(self.address, len(part))
        self._held += len(part)
        self.parts.append(part)

    def wait(self) -> None:
        """From now on it waits for its client alone."""
        self._memory.waiting[self] = trio.current_time()

    def cut(self) -> None:
        """Give the memory back, and cut the client."""
        self.release()
        self._cut_client()

    def release(self) -> None:
        """Give the memory back, if that has not been done."""
        self._memory.waiting.pop(self, None)
        self._memory.let_go(self.address, self._held)
        self._held = 0
        self.parts = []
