"""Calls that wait for a worker of one profile, grouped by what they want.

Calls of one group are equal but for their arrival, so a look for the next one is a look at the first of each group.
"""

from collections.abc import Iterator
from typing import NamedTuple

import trio

from frontend.pool.channel import WorkerChannel
from frontend.pool.order import ServiceOrder


class Want(NamedTuple):
    """The kind of worker that a call needs. `owners` own it, the larger group first."""

    owners: tuple[str, ...] = ()
    is_fresh: bool = False
    """A worker that has never served a call."""
    is_patient: bool = False
    """A worker will do that has other calls to run before it, as long as none of them takes long."""
    is_brief: bool = False
    """It is expected to end in a moment, and patient."""
    action: str = ""
    is_shared: bool = False
    """A worker will do that runs other calls of its action at the same time."""

    @property
    def principal(self) -> str:
        """The largest group that owns the call; empty where none does."""
        return self.owners[0] if self.owners else ""


class WaitingCall:
    """One call that waits, until it has a channel."""

    __slots__ = ("arrived", "channel", "number", "want")

    def __init__(self, want: Want) -> None:
        self.want = want
        self.arrived = trio.Event()
        self.channel: WorkerChannel | None = None
        self.number = 0
        """In the order of arrival."""


class WaitingCalls:
    """All that wait in one pool."""

    def __init__(self, order: ServiceOrder) -> None:
        self._order = order
        self._groups: dict[Want, dict[WaitingCall, None]] = {}
        self._count = 0
        self._arrived = 0

    def __len__(self) -> int:
        """Calls that wait."""
        return self._count

    def add(self, waiting: WaitingCall) -> None:
        """A call has to wait."""
        self._arrived += 1
        self._count += 1
        waiting.number = self._arrived
        self._groups.setdefault(waiting.want, {})[waiting] = None

    def remove(self, waiting: WaitingCall) -> None:
        """It waits no longer."""
        group = self._groups[waiting.want]
        del group[waiting]
        self._count -= 1
        if not group:
            del self._groups[waiting.want]

    def groups(self) -> Iterator[tuple[Want, int]]:
        """Each want of those that wait, and how many have it."""
        for want, group in self._groups.items():
            yield want, len(group)

    def in_turn(self) -> list[WaitingCall]:
        """The first call of each group, the least recently served owners first."""
        first = [next(iter(group)) for group in self._groups.values()]
        if len(first) > 1:
            first.sort(key=lambda waiting: (self._order.last(waiting.want.owners), waiting.number))
        return first
