"""Waiting for bytes. Not select(2): a run may have more than a thousand files open, and that can't name them."""

import select
from typing import Protocol


class Source(Protocol):
    """A socket, a pipe, a terminal."""

    def fileno(self) -> int:
        """Its descriptor."""


def readable(source: Source | int, seconds: float) -> bool:
    """Whether there is something to read, or an end, within so many seconds."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
