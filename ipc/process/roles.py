"""Processes of a gateway that calls can do without."""

from typing import Final

DELIVERER: Final = "deliverer"
"""Sends webhooks."""
BROKER: Final = "broker"
"""Fetches tokens."""
CALLS_DO_WITHOUT: Final = frozenset({DELIVERER, BROKER})
"""In a crash loop they degrade a gateway and leave it ready. SECURITY: otherwise a receiver of webhooks, or a server
of tokens, that finds a way to crash the process that talks to it would take the gateway out of service."""
