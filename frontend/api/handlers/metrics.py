"""GET /metrics: what the fronts have counted, and how things stand at this moment."""

from typing import Annotated

import trio

from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import Media, codes
from frontend.health.dependencies import Look
from frontend.http.answers import Answer
from frontend.services import Services
from frontend.telemetry import families as f
from frontend.telemetry.cells import Labels
from frontend.telemetry.readings import CONTENT_TYPE, Readings, exposition, shown

SHOWN = "OpenMetrics 1.0; docs/metrics.md lists every family. What can't be told now is absent."


@codes()
async def metrics(services: Services, _operator: OperatorCaller) -> Annotated[Answer, Media(CONTENT_TYPE, SHOWN)]:
    """Show the metrics of the gateway: those of all its fronts, whichever answers."""
    look = await services.dependencies.look()
    async with services.scraping:  # a text costs a thread some milliseconds: one at a time
        others = tuple(services.presence.others().values())
        families = shown(services.metrics, readings(services, look), others)
        text = await trio.to_thread.run_sync(
            exposition, families, services.processes, others, abandon_on_cancel=True
        )  # fmt: skip
    return Answer(200, text, content_type=CONTENT_TYPE)


def readings(services: Services, look: Look) -> Readings:
    """What is true at this moment and known: of this front, but for what is the gateway's as a whole."""
    found: dict[f.Family, dict[Labels, float]] = {
        f.IN_FLIGHT: {(): services.admission.in_flight_everywhere},
        f.FRONTS: {(): 1 + len(services.presence.serving)},
        f.ACTIONS: {(): len(services.registry)},
        f.DRAINING: {(): services.admission.is_draining},
        f.BUILD: {(services.settings.version,): 1},
        f.DEPENDENCY_UP: {(name,): up for name, up in services.health_of(look).dependencies.items()},
        **services.worker_gauges(),
    }
    if look.ledger_status is not None:
        found[f.UNRESOLVED] = {(): look.ledger_status.unresolved}
        found[f.OUTBOX] = {(): look.ledger_status.deliveries}
    if look.store_status is not None:
        found[f.PENDING] = {(): look.store_status.held}
        found[f.EPOCH] = {(): look.store_status.epoch}
        found[f.OLDEST_PENDING] = {(): look.store_status.oldest_age}
    return found
