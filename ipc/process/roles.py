"""Processes of a gateway that calls can do without."""

from typing import Final

DELIVERER: Final = "deliverer"
"""Sends webhooks."""
BROKER: Final = "broker"
"""Fetches tokens."""
EXPORTER: Final = "exporter"
"""Sends spans of calls to a collector."""
CALLS_DO_WITHOUT: Final = frozenset({DELIVERER, BROKER, EXPORTER})
"""In a crash loop they degrade a gateway and leave it ready. SECURITY: otherwise a receiver of webhooks, a server
of tokens or a collector that finds a way to crash the process that talks to it would take the gateway out of
service."""
