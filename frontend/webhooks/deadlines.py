"""How often the deliverer looks for webhooks to send, and how long it keeps what it has taken. All in seconds.

Holds values only. How long one attempt may take is a setting of its endpoint.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebhookDeadlines:
    """The waits of frontend/webhooks/, in seconds."""

    look_again_seconds: float = 3.0
    """Between two looks at what is due: what was claimed by a deliverer that crashed sends no wake-up."""
    try_again_seconds: float = 1.0
    """After the ledger or the clock has failed."""
    claim_margin_seconds: float = 5.0
    """A claim outlives its attempt by this much: it has to be settled, too."""
    test_margin_seconds: float = 5.0
    """A front waits for an operator's attempt so much longer than the attempt may take."""
