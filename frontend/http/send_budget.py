"""Answers that their clients have not taken yet: how many bytes of them the front keeps, and whose they are.

A client that reads slowly, or not at all, costs memory for as long as its answer waits. All of it is bounded, and each
user's part of it (frontend/limits/shares.py): who is over it loses the answer of its own that has waited longest.
Guarantees that no user's answer is cut for another user's.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from frontend.limits.shares import is_among_the_last

USER_SHARE = 1
"""Bytes that one user's answers may hold for each that is free: one alone half of all."""
GRACE_SECONDS = 5.0
BYTES_A_SECOND = 64 * 1024
"""A client has that time for an answer, and one more second for this many bytes."""


Owner = tuple[str, int | None]
"""Kind of listening socket, so that agents cut no operator's answers, and user id (None on TCP)."""


class NoRoom(Exception):
    """This answer can't be kept for its client."""


def seconds_for(size: int, most: float) -> float:
    """How long a client may take for this many bytes."""
    return min(most, GRACE_SECONDS + size / BYTES_A_SECOND)


class SendBudget:
    """The bytes that wait to be sent in one front. `ceiling`: the most bytes in all."""

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._kept: dict[Owner, dict[trio.CancelScope, int]] = {}
        self.size = 0
        """Bytes of all that waits."""

    @contextmanager
    def kept(self, owner: Owner, size: int) -> Iterator[None]:
        """Keep an answer of this owner as long as the block runs; it is ended where another one of the same owner needs
        the room. Raises NoRoom, at the start or then."""
        own = self._kept.setdefault(owner, {})
        while not self._fits(sum(own.values()), size):
            if not own:
                self._forget(owner)
                raise NoRoom
            longest = next(iter(own))
            self.size -= own.pop(longest)
            longest.cancel()
        with trio.CancelScope() as scope:
            own[scope] = size
            self.size += size
            try:
                yield
            finally:
                self.size -= own.pop(scope, 0)
                self._forget(owner)
        if scope.cancelled_caught:
            raise NoRoom

    def _fits(self, held: int, size: int) -> bool:
        free = self._ceiling - self.size - size
        if free < 0:
            return False
        return held == 0 or (held + size <= USER_SHARE * free and not is_among_the_last(free, self._ceiling))

    def _forget(self, owner: Owner) -> None:
        if not self._kept.get(owner, True):
            del self._kept[owner]
