"""Calls that wait for a worker of one profile, grouped by what they want.

Where one call finds no worker, no other one does that differs from it in session and arrival alone. So a look for the
next call is a look at one of each kind, however many sessions wait.
"""

from collections import Counter
from collections.abc import ItemsView
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

    @property
    def kind(self) -> "Want":
        """The same for all sessions of a principal: all that decides which workers will do."""
        return self._replace(owners=self.owners[:1])


class WaitingCall:
    """One call that waits, until it has a channel."""

    __slots__ = ("arrived", "channel", "kind", "number", "want")

    def __init__(self, want: Want) -> None:
        self.want = want
        self.kind = want.kind
        self.arrived = trio.Event()
        self.channel: WorkerChannel | None = None
        self.number = 0
        """In the order of arrival."""


class WaitingCalls:
    """All that wait in one pool."""

    def __init__(self, order: ServiceOrder) -> None:
        self._order = order
        self._groups: dict[Want, dict[Want, dict[WaitingCall, None]]] = {}
        """By kind, and those of a kind by want."""
        self._counts: Counter[Want] = Counter()
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
        self._counts[waiting.kind] += 1
        self._groups.setdefault(waiting.kind, {}).setdefault(waiting.want, {})[waiting] = None

    def remove(self, waiting: WaitingCall) -> None:
        """It waits no longer."""
        groups = self._groups[waiting.kind]
        group = groups[waiting.want]
        del group[waiting]
        self._count -= 1
        self._counts[waiting.kind] -= 1
        if not group:
            del groups[waiting.want]
        if not groups:
            del self._groups[waiting.kind], self._counts[waiting.kind]

    def kinds(self) -> ItemsView[Want, int]:
        """Each kind of those that wait, and how many are of it."""
        return self._counts.items()

    def in_turn(self) -> list[WaitingCall]:
        """The next call of each kind, the least recently served owners first."""
        first = [min(map(_first, groups.values()), key=self._turn) for groups in self._groups.values()]
        first.sort(key=self._turn)
        return first

    def _turn(self, waiting: WaitingCall) -> tuple[list[int], int]:
        return self._order.last(waiting.want.owners), waiting.number


def _first(group: dict[WaitingCall, None]) -> WaitingCall:
    return next(iter(group))
