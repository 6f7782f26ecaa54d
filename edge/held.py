"""Bytes that the edge has in memory for its clients: bodies of requests, and answers that are read ahead."""

from collections import Counter
from typing import Final

MAX_HELD: Final = 64 * 1024 * 1024
"""Bytes of all request bodies, and as many of all answers."""
MAX_HELD_OF_ADDRESS: Final = MAX_HELD // 4
MAX_AHEAD: Final = 1_048_576
"""Bytes of one answer that are read ahead."""


class HeldBytes:
    """Bytes in memory, bounded for each address and for all together."""

    def __init__(self) -> None:
        self._of_address: Counter[str] = Counter()
        self._all = 0

    def hold(self, address: str, size: int) -> bool:
        """Count bytes; False where its address, or all together, would have too many."""
        if self._of_address[address] + size > MAX_HELD_OF_ADDRESS or self._all + size > MAX_HELD:
            return False
        self._all += size
        self._of_address[address] += size
        return True

    def let_go(self, address: str, size: int) -> None:
        """They are needed no more."""
        self._all -= size
        self._of_address[address] -= size
        if self._of_address[address] <= 0:
            del self._of_address[address]


class ReadAhead:
    """The first parts of an answer: all up to the one that finds no room."""

    def __init__(self, memory: HeldBytes, address: str) -> None:
        self._memory = memory
        self._address = address
        self._held = 0
        self._is_open = True
        self.parts: list[bytes] = []

    def keep(self, part: bytes) -> bool:
        """Keep a part; False from the first on that has no room."""
        self._is_open = (
            self._is_open and self._held + len(part) <= MAX_AHEAD and self._memory.hold(self._address, len(part))
        )
        if self._is_open:
            self._held += len(part)
            self.parts.append(part)
        return self._is_open

    def release(self) -> None:
        """Give the memory back."""
        self._memory.let_go(self._address, self._held)
