"""Webhooks as operators see, try and repeat them."""

from typing import Literal

from .noun import Noun


class WebhookEndpoint(Noun, frozen=True, kw_only=True):
    """One endpoint, by its name alone: addresses and headers are often credentials."""

    name: str
    state: Literal["active", "disabled", "gone", "removed"]
    """`gone`: it has answered 410, and is sent nothing until the next reload. `removed`: the configuration has it no
    longer."""
    waiting: int
    """Deliveries that wait, those under way among them."""
    given_up: int
    """Dead letters that are kept."""


class DeadLetter(Noun, frozen=True, kw_only=True):
    """A delivery that was given up. Its body is not shown."""

    event_id: str
    endpoint: str
    type: str
    attempts: int
    given_up_at: str
    error: str
    status: int | None
    """The HTTP status that the receiver answered last; null where it did not answer."""


class WebhookList(Noun, frozen=True, kw_only=True):
    """Endpoints by name, and dead letters, the newest first."""

    endpoints: tuple[WebhookEndpoint, ...]
    dead_letters: tuple[DeadLetter, ...]


class TestedWebhook(Noun, frozen=True, kw_only=True):
    """The result of one attempt."""

    name: str
    outcome: Literal["delivered", "failed", "rejected", "blocked"]
    status: int | None
    """The HTTP status of the receiver's answer; null without one."""
    error: str | None
    event_id: str
    """The `webhook-id` that was sent."""


class Redelivered(Noun, frozen=True, kw_only=True):
    """How many wait again."""

    name: str
    redelivered: int
    left: int
    """Dead letters of this endpoint that stay."""
