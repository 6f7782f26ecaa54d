"""Front or deliverer, and notary: deliveries of webhooks that are claimed, settled and sent again."""

from typing import Final

import msgspec

from ipc.events import AuditEvent
from ipc.messages.operation import Operation

GIVEN_UP_FOR: Final = ("rejected", "exhausted", "blocked")
"""By the receiver; after the last retry; by an address that must not be reached."""


class ClaimDeliveries(Operation, frozen=True):
    """Take deliveries of an endpoint that are due. Answers Deliveries. Times in milliseconds since the Unix epoch."""

    endpoint: str
    now: int
    until: int
    limit: int


class SettleDelivery(Operation, frozen=True):
    """What became of a claimed delivery: put off until `due`, given up with `error`, or, with neither, delivered.

    `reason` says why it is given up, one of GIVEN_UP_FOR. Of a claim that has passed to another nothing happens.
    Answers None.
    """

    seq: int
    attempt: int
    event_id: str
    due: int | None = None
    at: int | None = None
    error: str | None = None
    reason: str = "exhausted"


class RedeliverDeliveries(Operation, frozen=True):
    """Have what was given up of an endpoint wait again, due at `now`: that of one event, or the oldest so many, with an
    event that says how many. Answers Requeued."""

    endpoint: str
    event_id: str | None
    now: int
    event: AuditEvent
    statuses: tuple[int, ...] = ()
    """Only those that the receiver refused with one of these HTTP statuses; empty for all."""


class Requeued(msgspec.Struct, frozen=True):
    """How many wait again, and how many stay given up."""

    count: int
    left: int


class NextDelivery(Operation, frozen=True):
    """When the first of an endpoint's deliveries is due. Answers milliseconds, or None when none waits."""

    endpoint: str
