"""The interface of the amounts that caps count (ipc/caps.py), a part of the store.

Amounts are billionths, integers of any size. They count by steps of a window: an amount counts until its whole step has
left the window. Steps to come count, too, so that a clock that was set back lets through no more.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from ipc.caps import CapReservation, step_seconds

MAX_SUBJECTS: Final = 10_000
"""Subjects that one cap counts at the same time."""
KEPT_SECONDS: Final = 60
"""Steps that count no more are kept this long, for a clock that a time service has set back a little."""
HELD_SECONDS: Final = 60
"""Beyond the end of its hold, an approved call may take this long until it is opened."""


class CapCounter(NamedTuple):
    """The counter that an amount is added to."""

    action_id: str
    pointer: str
    per: str
    window_seconds: int
    subject: str


class CapAmount(NamedTuple):
    """The amount of a window, and the part of calls whose outcome is unknown."""

    total: int
    unknown: int


NOTHING: Final = CapAmount(0, 0)


def gone_at(counter: CapCounter, until: int) -> int:
    """When an amount of this step counts no more (Unix seconds)."""
    return until + counter.window_seconds


def longest_life(counter: CapCounter, held_seconds: float) -> float:
    """Seconds after which no amount of this counter counts that was added now."""
    return counter.window_seconds + step_seconds(counter.window_seconds) + held_seconds + KEPT_SECONDS


def text_of_reservations(reserved: Sequence[CapReservation]) -> str:
    """The reservations of a held call as they are kept."""
    return msgspec.json.encode(reserved).decode()


def reservations_of(kept: str) -> tuple[CapReservation, ...]:
    """Those that `text_of_reservations` wrote."""
    return _reservations.decode(kept)


_reservations = msgspec.json.Decoder(tuple[CapReservation, ...])


class CapCounts(Protocol):
    """The amounts within one unit. Every method may raise DatabaseGone or StoreGone."""

    def amount(self, counter: CapCounter, now: float) -> CapAmount:
        """The amount that counts now."""
        ...

    def add(self, counter: CapCounter, until: int, units: int) -> None:
        """One more amount in the step that ends then."""
        ...

    def take(self, counter: CapCounter, until: int, units: int) -> None:
        """Take an amount back that was added; nothing to do if it counts no more."""
        ...

    def mark(self, counter: CapCounter, until: int, units: int) -> None:
        """The outcome of the call of this amount is unknown; nothing to do if it counts no more."""
        ...

    def has_room(self, counter: CapCounter, now: float) -> bool:
        """False for a subject without an amount where the cap counts as many subjects as it may."""
        ...

    def subjects(self, counter: CapCounter, now: float, after: str | None, limit: int) -> list[str]:
        """Subjects of this cap behind `after`, whatever the counter's own is, by their names: at most `limit`."""
        ...

    def keep_reserved(self, approval_id: str, reserved: str, gone_at: int) -> None:
        """The reservations of a held call, JSON text, until they count no more."""
        ...

    def reserved(self, approval_id: str) -> str | None:
        """Those of a held call."""
        ...

    def drop_reserved(self, approval_id: str) -> None:
        """They belong to the held call no more."""
        ...
