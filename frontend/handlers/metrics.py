"""GET /metrics: what this front has counted, and how things stand at this moment."""

from typing import Annotated

import trio

from frontend.authentication import OperatorCaller
from frontend.contract.marks import Media, codes
from frontend.house import House
from frontend.http.answers import Answer
from frontend.telemetry import families as f
from frontend.telemetry.cells import Labels
from frontend.telemetry.readings import CONTENT_TYPE, Readings, exposition, shown
from frontend.vitals import Look

SHOWN = "OpenMetrics 1.0; docs/metrics.md lists every family. What can't be told now is absent."


@codes()
async def metrics(house: House, _operator: OperatorCaller) -> Annotated[Answer, Media(CONTENT_TYPE, SHOWN)]:
    """Show the metrics of the front that answers."""
    look = await house.vitals.look()
    async with house.scraping:  # a text costs a thread some milliseconds: one at a time
        families = shown(house.metrics, readings(house, look))
        text = await trio.to_thread.run_sync(exposition, families, house.processes, abandon_on_cancel=True)
    return Answer(200, text, content_type=CONTENT_TYPE)


def readings(house: House, look: Look) -> Readings:
    """What is true at this moment and known."""
    found: dict[f.Family, dict[Labels, float]] = {
        f.IN_FLIGHT: {(): house.admission.in_flight},
        f.ACTIONS: {(): len(house.registry)},
        f.DRAINING: {(): house.admission.is_draining},
        f.BUILD: {(house.settings.version,): 1},
        f.DEPENDENCY_UP: {(name,): up for name, up in house.health_of(look).dependencies.items()},
        f.WORKERS: {},
        f.WAITING: {},
    }
    if look.books is not None:
        found[f.UNRESOLVED] = {(): look.books.unresolved}
        found[f.OUTBOX] = {(): look.books.deliveries}
    if look.shelf is not None:
        found[f.PENDING] = {(): look.shelf.held}
        found[f.EPOCH] = {(): look.shelf.epoch}
        found[f.OLDEST_PENDING] = {(): look.shelf.oldest_age}
    for profile, census in house.pools.census().items():
        found[f.WORKERS][profile, "idle"] = census.idle
        found[f.WORKERS][profile, "busy"] = census.members - census.idle
        found[f.WAITING][(profile,)] = census.waiting
    return found
