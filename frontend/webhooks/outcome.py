"""The outcomes of an attempt to deliver."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, Protocol

import trio

from frontend.webhooks.endpoints import WebhookTarget
from ipc.backends.webhooks import answered
from ipc.evidence.records import Delivery

DELIVERED: Final = "delivered"
FAILED: Final = "failed"
"""May go better another time."""
REJECTED: Final = "rejected"
"""By the receiver, for good."""
BLOCKED: Final = "blocked"
"""By us, for good."""
GONE: Final = 410
"""The status by which a receiver says that it wants no more messages, ever."""
NOT_CONFIGURED: Final = "the endpoint is not configured any more"
MAX_RETRY_AFTER_CHARACTERS: Final = 64


class AttemptOutcome(NamedTuple):
    """The outcome of one attempt. `status` is the HTTP status of an answer, `error` a sentence of the gateway."""

    kind: str
    status: int | None = None
    error: str = ""
    retry_after: float = 0.0
    """Seconds that the receiver of a failed attempt asked for; 0 where it asked for none."""


class Attempts(Protocol):
    """Makes attempts (frontend/webhooks/delivery.py)."""

    async def attempt(
        self, endpoint: WebhookTarget, delivery: Delivery, moment: int, lookups: trio.CapacityLimiter
    ) -> AttemptOutcome:
        """Send `delivery` now, which is `moment` (Unix seconds); `lookups` bounds the threads that look up its name.

        Raises nothing but Cancelled.
        """


def judged(status: int, retry_after: float = 0.0) -> AttemptOutcome:
    """Judge the receiver's status (docs/contract.md, "Webhooks"): redirects are never followed."""
    if 200 <= status < 300:
        return AttemptOutcome(DELIVERED, status)
    if 300 <= status < 500:
        return AttemptOutcome(REJECTED, status, answered(status))
    return AttemptOutcome(FAILED, status, answered(status), retry_after)


def asked_pause(value: str, now: float) -> float:
    """Seconds that a `Retry-After` asks for at `now` (Unix seconds): a number or an HTTP date (RFC 9110, 10.2.3); 0 for
    the past and for any other text."""
    if len(value) > MAX_RETRY_AFTER_CHARACTERS or not value.isascii():
        return 0.0
    if value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
