"""Processes of a gateway that calls can do without."""

from typing import Final

DELIVERER: Final = "deliverer"
"""Sends webhooks."""
CALLS_DO_WITHOUT: Final = frozenset({DELIVERER})
"""In a crash loop they degrade a gateway and leave it ready. SECURITY: otherwise a receiver of webhooks that finds a
way to crash the process that sends them would take the gateway out of service."""
