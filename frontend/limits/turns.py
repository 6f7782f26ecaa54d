"""Turns at one thing that is used by one at a time, by what each caller has used of it (ipc/channel/fair_queue.py).

A caller belongs to owners, the larger group first: its principal, then its session.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from ipc.channel.fair_queue import FairQueue

Owners = Sequence[str]


@dataclass(slots=True, eq=False)
class Turn:
    """One caller's wish. `has_come` is set when it is at work."""

    owners: Owners
    has_come: trio.Event = field(default_factory=trio.Event)


class Turns:
    """Gives turns. Each `enter` needs a `leave`; neither waits."""

    def __init__(self) -> None:
        self._at_work: Turn | None = None
        self._waiting: FairQueue[Turn] = FairQueue()

    def __len__(self) -> int:
        """Owners that are remembered."""
        return self._waiting.remembered

    def enter(self, owners: Owners) -> Turn:
        """Wish for a turn; it may have come already."""
        turn = Turn(owners)
        self._waiting.put(owners, turn)
        if self._at_work is None:
            self._pass_on()
        return turn

    def leave(self, turn: Turn, used: float) -> None:
        """The turn is over, or is not waited for any more; `used` is charged to its owners."""
        if turn is not self._at_work:
            self._waiting.remove(turn.owners, turn)
            return
        self._waiting.charge(turn.owners, used)
        self._pass_on()

    def _pass_on(self) -> None:
        following = self._waiting.take()
        self._at_work = None if following is None else following[1]
        if self._at_work is not None:
            self._at_work.has_come.set()
