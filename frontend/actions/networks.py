"""The private networks of a plan: those that the names it may call lead into.

Guarantees that a plan and the configuration of now are compared by the same rule that made the plan.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from ipc.configuration.networks import NetworkSettings, PlanNetwork
from ipc.network.reach import networks_for
from ipc.plan import Plan, PlannedRequest

DIRECT = "direct_allowlist"
"""The profile whose calls may enter a private network; behind an egress proxy the proxy judges."""


def planned_networks(
    networks: tuple[NetworkSettings, ...], profile: str, domains: Iterable[str], planned: PlannedRequest | None
) -> tuple[PlanNetwork, ...]:
    """The networks for a call to the host of `planned`, or without it to names of these domain rules."""
    if not networks or profile != DIRECT:
        return ()
    return networks_for(networks, domains if planned is None else (urlsplit(planned.url).hostname or "",))


def are_in_force(plan: Plan, networks: tuple[NetworkSettings, ...]) -> bool:
    """True if the plan has the networks that it would have by this configuration."""
    domains = plan.egress.allowed_domains + plan.unresolved_domains
    return plan.egress.networks == planned_networks(networks, plan.egress.profile, domains, plan.http_request)
