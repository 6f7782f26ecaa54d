"""What the gateway tells of its webhooks: endpoints by name, what was given up, and what came of trying one."""

from dataclasses import dataclass, field

from gateway_client.results import Raw


@dataclass(frozen=True, kw_only=True)
class WebhookEndpoint:
    """One endpoint. `state` is active, disabled, gone (it answered 410) or removed."""

    name: str
    state: str
    waiting: int
    given_up: int
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A delivery that was given up."""

    event_id: str
    endpoint: str
    type: str
    attempts: int
    given_up_at: str
    error: str
    status: int | None = None
    """The HTTP status that the receiver answered last."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class WebhookList:
    """Endpoints by name; dead letters, the newest first."""

    endpoints: tuple[WebhookEndpoint, ...]
    dead_letters: tuple[DeadLetter, ...]
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class TestedWebhook:
    """What came of one attempt: `outcome` is delivered, failed, rejected or blocked."""

    name: str
    outcome: str
    event_id: str
    status: int | None = None
    error: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Redelivered:
    """How many wait again, and how many stay given up."""

    name: str
    redelivered: int
    left: int
    raw: Raw = field(repr=False)
