"""Which of many wishes is next, by what their owners have used. Pure.

Start-time fair queueing: the owner that has used least is next; a newcomer counts as having used what the one at work
had when it began, less CREDIT. So owners that want more than their part share equally what the others leave (max-min
fair), and one that wants little waits for the one at work and for no queue. A wish has owners, the larger group first
(a principal, then its session). Remembers nothing beyond a busy period, and no owner that has used less than a
newcomer.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Generic, TypeVar

Wish = TypeVar("Wish")
Owners = tuple[str, ...]
CREDIT = 0.05
"""In seconds, as what is used: a caller that has used little is ahead of others by this, and never by more."""


class FairQueue(Generic[Wish]):
    """The wishes that wait; those of one owner keep their order."""

    def __init__(self) -> None:
        self._waiting: dict[Owners, deque[Wish]] = {}
        self._count = 0
        self._used: dict[tuple[int, str], float] = {}
        self._base: defaultdict[int, float] = defaultdict(float)
        """Level of owners -> the most that one at work had used when it began."""

    def __len__(self) -> int:
        return self._count

    @property
    def remembered(self) -> int:
        """Owners whose use is remembered."""
        return len(self._used)

    def put(self, owners: Sequence[str], wish: Wish) -> None:
        """One more wish."""
        self._waiting.setdefault(tuple(owners), deque()).append(wish)
        self._count += 1

    def remove(self, owners: Sequence[str], wish: Wish) -> None:
        """The wish is given up. Raises ValueError when it does not wait."""
        self._waiting.get(tuple(owners), deque()).remove(wish)
        self._taken(tuple(owners))

    def take(self) -> tuple[Owners, Wish] | None:
        """The next wish. None when the queue is empty; the use of all owners is then forgotten."""
        if not self._waiting:
            self._used.clear()
            self._base.clear()
            return None
        owners = min(self._waiting, key=lambda one: [self._of(*owner) for owner in enumerate(one)])
        wish = self._waiting[owners].popleft()
        self._taken(owners)
        for level, owner in enumerate(owners):
            self._base[level] = max(self._base[level], self._of(level, owner))
        self._used = {one: used for one, used in self._used.items() if used > self._newcomer(one[0])}
        return owners, wish

    def charge(self, owners: Sequence[str], used: float) -> None:
        """A wish of these owners is over, and has used this."""
        for level, owner in enumerate(owners):
            self._used[level, owner] = self._of(level, owner) + used

    def _taken(self, owners: Owners) -> None:
        self._count -= 1
        if not self._waiting[owners]:
            del self._waiting[owners]

    def _of(self, level: int, owner: str) -> float:
        newcomer = self._newcomer(level)
        return max(newcomer, self._used.get((level, owner), newcomer))

    def _newcomer(self, level: int) -> float:
        return self._base[level] - CREDIT
