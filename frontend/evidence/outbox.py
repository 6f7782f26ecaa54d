"""The outbox's interface: deliveries that were written with their events, until they are delivered or given up.

Guarantees of every backend: a delivery is there exactly when its event is, due from that one's time on; of any number
of fronts one has it at a time, and who dies with it loses it again at the end of its claim; what is given up stays to
be looked at, the newest MAX_GIVEN_UP of them. Times are milliseconds since the Unix epoch. Everything raises
LedgerUnavailable.
"""

from typing import Final, Protocol

import msgspec

MAX_GIVEN_UP: Final = 10_000
FAR_MS: Final = 2 * 3600 * 1000
"""Nothing is put off for longer than an hour: what is due later than this was dated by a clock that was wrong since,
and is due."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One claimed delivery. `attempt` counts this one, from 1."""

    seq: int
    event_id: str
    kind: str
    endpoint: str
    payload: str
    attempt: int


class Outbox(Protocol):
    """What a backend implements."""

    async def claim(self, endpoint: str, *, now: int, until: int, limit: int) -> list[Delivery]:
        """Take deliveries of an endpoint that are due at `now`, the longest due first; each has one attempt more, and
        nobody else gets it before `until`. Durable before anything is sent."""

    async def delivered(self, delivery: Delivery) -> None:
        """It has arrived. Of a claim that has passed to another, nothing happens; so for the two that follow."""

    async def put_off(self, delivery: Delivery, due: int) -> None:
        """Try again at `due`."""

    async def give_up(self, delivery: Delivery, *, at: int, error: str) -> None:
        """Never try again: moved to where what was given up is kept, with a sentence why."""

    async def give_up_all(self, endpoint: str, *, at: int, error: str) -> int:
        """The same for everything that waits for an endpoint, claimed or not; how many. In steps: when it raises, what
        was moved before stays moved."""

    async def waiting(self) -> dict[str, int]:
        """How many deliveries wait, claimed ones among them, by endpoint; an endpoint without any is absent."""

    async def next_due(self, endpoint: str) -> int | None:
        """When the first of an endpoint's deliveries is due, or its claim ends; None when nothing waits."""
