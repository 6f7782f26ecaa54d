"""GET /healthz and /readyz: the same on every socket, never behind authentication, never audited."""

from typing import Annotated

from contract.health import Alive, NotReady, Readiness
from frontend.contract.annotations import StatusCode, codes
from frontend.services import Services


@codes()
async def healthz(_services: Services) -> Alive:
    """Tell that the process lives: 200 as long as the event loop turns."""
    return Alive()


@codes()
async def readyz(services: Services) -> Readiness | Annotated[NotReady, StatusCode(503)]:
    """Tell whether calls can be let through, with every dependency by name.

    `degraded` is 200 as well: the core works, and only what needs the egress proxy does not. A gateway that drains is
    `not_ready`.
    """
    health = await services.health()
    for name, is_up in health.dependencies.items():
        if not is_up:
            services.metrics.readiness_degraded.add(name)
    if health.is_ledger_full:
        services.metrics.readiness_degraded.add("ledger_full")
    if health.crash_loops:
        services.metrics.readiness_degraded.add("crash_loop")
    if health.clock is not None:
        services.metrics.readiness_degraded.add("clock")
    if health.is_draining:
        services.metrics.readiness_degraded.add("draining")
    return Readiness(**health.readiness()) if health.is_ready else NotReady(**health.readiness())
