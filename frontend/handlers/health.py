"""GET /healthz and /readyz: the same on every socket, never behind authentication, never audited."""

from typing import Annotated

from frontend.contract.health import Alive, NotReady, Readiness
from frontend.contract.marks import Status, codes
from frontend.house import House


@codes()
async def healthz(_house: House) -> Alive:
    """Tell that the process lives: 200 as long as the event loop turns."""
    return Alive()


@codes()
async def readyz(house: House) -> Readiness | Annotated[NotReady, Status(503)]:
    """Tell whether calls can be let through, with every dependency by name.

    `degraded` is 200 as well: the core works, and only what needs the egress proxy does not.
    """
    health = await house.health()
    for name, is_up in health.dependencies.items():
        if not is_up:
            house.metrics.readiness_degraded.add(name)
    return Readiness(**health.readiness()) if health.is_ready else NotReady(**health.readiness())
