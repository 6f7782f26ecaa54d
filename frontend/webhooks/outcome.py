"""What may come of one attempt to deliver."""

from typing import Final, NamedTuple, Protocol

import trio

from frontend.webhooks.endpoints import Endpoint
from ipc.evidence import Delivery

DELIVERED: Final = "delivered"
FAILED: Final = "failed"
"""May go better another time."""
REJECTED: Final = "rejected"
"""By the receiver, for good."""
BLOCKED: Final = "blocked"
"""By us, for good."""


class Outcome(NamedTuple):
    """What came of one attempt. `status` is the HTTP status where there was an answer, `error` a sentence of ours."""

    kind: str
    status: int | None = None
    error: str = ""


class Attempts(Protocol):
    """Who makes attempts (frontend/webhooks/delivery.py)."""

    async def attempt(
        self, endpoint: Endpoint, delivery: Delivery, moment: int, lookups: trio.CapacityLimiter
    ) -> Outcome:
        """Send `delivery` now, which is `moment` (Unix seconds); `lookups` bounds the threads that look up its name.

        Raises nothing but Cancelled.
        """


def judged(status: int) -> Outcome:
    """What the receiver's status makes of it (docs/contract.md, "Webhooks"): redirects are never followed."""
    if 200 <= status < 300:
        return Outcome(DELIVERED, status)
    return Outcome(REJECTED if 300 <= status < 500 else FAILED, status, f"the receiver answered {status}")
