"""Webhooks as operators see, try and repeat them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from frontend.contract.forms import Body, Query

DEFAULT_GIVEN_UP, MAX_GIVEN_UP = 50, 500


class WebhooksQuery(Query, frozen=True, kw_only=True):
    """What to list."""

    endpoint: str | None = None
    """Dead letters of this endpoint alone."""
    limit: Annotated[int, Meta(ge=0, le=MAX_GIVEN_UP)] = DEFAULT_GIVEN_UP
    """How many dead letters at most, the newest first."""


class WebhookEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint, by its name alone: addresses and headers are often credentials."""

    name: str
    state: Literal["active", "disabled", "gone", "removed"]
    """`gone`: it has answered 410, and is sent nothing until the next reload. `removed`: the configuration has it no
    longer."""
    waiting: int
    """Deliveries that wait, those under way among them."""
    given_up: int
    """Dead letters that are kept."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that was given up. Its body is not shown."""

    event_id: str
    endpoint: str
    type: str
    attempts: int
    given_up_at: str
    error: str
    status: int | None
    """The HTTP status that the receiver answered last; null where it did not answer."""


class WebhookList(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints by name, and dead letters, the newest first."""

    endpoints: list[WebhookEndpoint]
    dead_letters: list[DeadLetter]


class TestedWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one attempt."""

    name: str
    outcome: Literal["delivered", "failed", "rejected", "blocked"]
    status: int | None
    """Of the receiver's answer, where there was one."""
    error: str | None
    event_id: str
    """The `webhook-id` that was sent."""


class RedeliverRequest(Body, frozen=True, kw_only=True):
    """Which dead letters to send again."""

    event_id: str | None = None
    """That of this event alone; absent: the oldest hundred."""
    status: Annotated[list[Annotated[int, Meta(ge=300, le=599)]], Meta(min_length=1, max_length=16)] | None = None
    """Only those that the receiver refused with one of these HTTP statuses."""


class Redelivered(msgspec.Struct, frozen=True, kw_only=True):
    """How many wait again."""

    name: str
    redelivered: int
    left: int
    """Dead letters of this endpoint that stay."""
