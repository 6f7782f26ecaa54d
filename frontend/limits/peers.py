"""Calls in flight in other fronts, by owner: read from the memory that all fronts share, never asked for.

Each front writes its own calls into its own area, and reads the others'. Owners are counted in a few rows of counters
at places that their hash names; the least of an owner's counters counts: it is never too low, and too high only where
others happen to share all of its places. A lone front looks nothing up.
"""

from hashlib import blake2b

from frontend.shared.memory import SharedMemory
from ipc.channel import front_memory as at


class Peers:
    """In flight in all fronts together."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._is_lone = not memory.others
        self._own_in_flight, self._own_owners = _parts(memory, memory.number)
        self._others = [_parts(memory, number) for number in memory.others]

    @property
    def is_draining(self) -> bool:
        """Whether the gateway refuses new work."""
        return self._memory.is_draining

    def drain(self) -> bool:
        """Have the whole gateway refuse new work. Returns whether it did already."""
        return self._memory.drain()

    def note_in_flight(self, count: int) -> None:
        """Publish the number of calls in flight here."""
        self._own_in_flight[0] = count

    def in_flight_elsewhere(self) -> int:
        """Calls in flight in the other fronts."""
        return sum(in_flight[0] for in_flight, _ in self._others)

    def note_place(self, owner: str, change: int) -> None:
        """This owner holds one place more here (1), or one less (-1)."""
        if not self._is_lone:
            for index in self._indices(owner):
                self._own_owners[index] += change

    def held_elsewhere(self, owner: str) -> int:
        """Places that this owner holds in the other fronts."""
        if self._is_lone:
            return 0
        indices = self._indices(owner)
        return sum(min(owners[index] for index in indices) for _, owners in self._others)

    def _indices(self, owner: str) -> list[int]:
        width = self._memory.layout.width
        digest = blake2b(owner.encode(), digest_size=4 * at.OWNER_ROWS).digest()
        return [
            row * width + int.from_bytes(digest[4 * row : 4 * row + 4], "little") % width
            for row in range(at.OWNER_ROWS)
        ]  # fmt: skip


def _parts(memory: SharedMemory, number: int) -> tuple[memoryview, memoryview]:
    """Where a front says how much is in flight, and for whom."""
    area = memory.area(number)
    owners = memory.part(area.owners, at.OWNER_ROWS * memory.layout.width * at.OWNER_BYTES)
    return memory.part(area.start + at.IN_FLIGHT, 8).cast("Q"), owners.cast("i")
