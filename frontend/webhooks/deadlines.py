"""How often a front looks for webhooks to send, and how long it keeps what it has taken. All in seconds.

Holds values only; frontend/compose.py hands them on. How long one attempt may take is a setting of its endpoint.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebhookDeadlines:
    """The waits of frontend/webhooks/, in seconds."""

    look_again_seconds: float = 3.0
    """Between two looks at what is due: rows of a front that crashed send no wake-up."""
    try_again_seconds: float = 1.0
    """After the ledger or the clock has failed."""
    claim_margin_seconds: float = 5.0
    """A claim outlives its attempt by this much: it has to be settled, too."""
    count_seconds: float = 10.0
    """Between two looks at how many wait."""
