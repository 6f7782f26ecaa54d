"""Memory as several fronts see it, in one process or in many."""

import os

from frontend.shared.memory import SharedMemory
from ipc.channel.front_memory import Layout, make_memory

WIDTH = 1 << 13


def views(fronts: int = 2) -> list[SharedMemory]:
    """The memory of so many fronts, as each of them sees it."""
    layout = Layout(fronts, WIDTH)
    made = make_memory(layout)
    memories = [SharedMemory(os.dup(made), layout, number) for number in range(1, fronts + 1)]
    os.close(made)
    return memories
