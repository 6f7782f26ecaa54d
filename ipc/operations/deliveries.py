"""Operations on deliveries of webhooks. The deliverer claims and settles them; fronts list them and send them again."""

from typing import Final

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.evidence.records import AbandonedDelivery, Delivery
from ipc.operations.operation import DelivererOperation, FrontOperation

GIVEN_UP_FOR: Final = ("rejected", "exhausted", "blocked")
"""The receiver rejected it; its last retry failed; its address must not be reached."""


class NextDelivery(DelivererOperation[int | None], frozen=True):
    """Read when the first delivery of an endpoint is due, in milliseconds; None when none waits."""

    endpoint: str


class ClaimDeliveries(DelivererOperation[list[Delivery]], frozen=True):
    """Claim deliveries of an endpoint that are due. Times in milliseconds since the Unix epoch."""

    endpoint: str
    now: int
    until: int
    limit: int


class SettleDelivery(DelivererOperation[None], frozen=True):
    """Record the end of a claimed delivery: put off until `due`, given up with `error`, or, with neither, delivered.

    `reason` says why it is given up, one of GIVEN_UP_FOR. If the claim has passed to another deliverer, the operation
    has no effect.
    """

    seq: int
    attempt: int
    event_id: str
    due: int | None = None
    at: int | None = None
    error: str | None = None
    reason: str = "exhausted"


class ListedDeliveries(msgspec.Struct, frozen=True):
    """How many wait and how many were given up, by endpoint; and letters that were given up, the newest first."""

    waiting: dict[str, int]
    given_up: dict[str, int]
    letters: list[AbandonedDelivery]


class ListDeliveries(FrontOperation[ListedDeliveries], frozen=True):
    """List the newest letters that were given up, of one endpoint or of all."""

    endpoint: str | None
    limit: int


class Requeued(msgspec.Struct, frozen=True):
    """How many wait again, and how many stay given up."""

    count: int
    left: int


class RedeliverDeliveries(FrontOperation[Requeued], frozen=True):
    """Have deliveries of an endpoint that were given up wait again, due at `now`: that of one event, or the oldest that
    fit, with an event that says how many."""

    endpoint: str
    event_id: str | None
    now: int
    event: AuditEvent
    statuses: tuple[int, ...] = ()
    """Only those that the receiver refused with one of these HTTP statuses; empty for all."""
