"""Turns at one thing that is used by one at a time, by what each caller has used of it. Pure but for the waiting.

Start-time fair queueing: the caller that has used least is next; a newcomer counts as having used what the one at work
had when it began, less CREDIT. So callers that want more than their part share equally what the others leave (max-min
fair), and one that wants little waits for the one at work and for no queue. A caller belongs to owners, the
larger group first (its principal, then its session). Remembers nothing beyond a busy period, and no caller that has
used less than a newcomer.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

Owners = Sequence[str]
CREDIT = 0.05
"""Of what turns are charged in: a caller who has used little is ahead of others by this, and never by more."""


@dataclass(slots=True, eq=False)
class Turn:
    """One caller's wish. `has_come` is set when it is at work."""

    owners: Owners
    has_come: trio.Event = field(default_factory=trio.Event)


class Turns:
    """Gives turns. `enter` and, whatever came of it, `leave`; both at once."""

    def __init__(self) -> None:
        self._at_work: Turn | None = None
        self._waiting: list[Turn] = []
        self._used: dict[tuple[int, str], float] = {}
        self._base: defaultdict[int, float] = defaultdict(float)
        """Level of owners -> the most that one at work had used when it began."""

    def __len__(self) -> int:
        """Owners that are remembered."""
        return len(self._used)

    def enter(self, owners: Owners) -> Turn:
        """Wish for a turn; it may have come already."""
        turn = Turn(owners)
        self._waiting.append(turn)
        if self._at_work is None:
            self._pass_on()
        return turn

    def leave(self, turn: Turn, used: float) -> None:
        """The turn is over, or is not waited for any more; `used` is charged to its owners."""
        if turn is not self._at_work:
            self._waiting.remove(turn)
            return
        for level, owner in enumerate(turn.owners):
            self._used[level, owner] = self._of(level, owner) + used
        self._pass_on()

    def _pass_on(self) -> None:
        if not self._waiting:
            self._at_work = None
            self._used.clear()
            self._base.clear()
            return
        turn = self._at_work = min(self._waiting, key=lambda one: [self._of(*owner) for owner in enumerate(one.owners)])
        self._waiting.remove(turn)
        for level, owner in enumerate(turn.owners):
            self._base[level] = max(self._base[level], self._of(level, owner))
        self._used = {one: used for one, used in self._used.items() if used > self._newcomer(one[0])}
        turn.has_come.set()

    def _of(self, level: int, owner: str) -> float:
        newcomer = self._newcomer(level)
        return max(newcomer, self._used.get((level, owner), newcomer))

    def _newcomer(self, level: int) -> float:
        return self._base[level] - CREDIT
