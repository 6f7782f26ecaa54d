"""GET /metrics: what the fronts have counted, and how things stand at this moment."""

import time
from collections.abc import Iterable
from typing import Annotated

import trio

from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import Media, codes
from frontend.health.dependencies import DependencyLook, LedgerHealth
from frontend.http.answers import Answer
from frontend.http.requests import Request
from frontend.services import Services
from frontend.telemetry import families as f
from frontend.telemetry.cells import Labels
from frontend.telemetry.readings import CONTENT_TYPE, Readings, exposition, shown
from ipc.operations.deliveries import GIVEN_UP_FOR
from ipc.operations.exporting import EventExport
from ipc.operations.witnesses import WitnessedCheckpoint
from ipc.process.clock import parse_iso

ATTEMPTS = ("delivered", "failed")
DROPS = (*GIVEN_UP_FOR, "outbox_full")
SHOWN = "OpenMetrics 1.0; docs/metrics.md lists every family. What can't be told now is absent."


@codes()
async def metrics(services: Services, _operator: OperatorCaller) -> Annotated[Answer, Media(CONTENT_TYPE, SHOWN)]:
    """Show the metrics of the gateway: those of all its fronts, whichever answers."""
    return await _shown(services)


@codes()
async def scrape(services: Services, request: Request) -> Annotated[Answer, Media(CONTENT_TYPE, SHOWN)]:
    """Show the same to every user that may open the socket of `[metrics]`, without a credential.

    SECURITY: no question of an operator draws from this bucket, so that a scraper in a loop keeps none from answers.
    """
    services.rates.take("scrape", "" if request.uid is None else str(request.uid))
    return await _shown(services)


async def _shown(services: Services) -> Answer:
    look = await services.dependencies.look()
    async with services.scraping:  # a text costs a thread some milliseconds: one at a time
        others = tuple(services.presence.others().values())
        services.metrics.expect_answers(
            one.action_id for one in services.registry.actions if one.response_schema is not None
        )
        families = shown(services.metrics, readings(services, look), others)
        text = await trio.to_thread.run_sync(
            exposition, families, services.processes, others, abandon_on_cancel=True
        )  # fmt: skip
    return Answer(200, text, content_type=CONTENT_TYPE)


def readings(services: Services, look: DependencyLook) -> Readings:
    """The gauges of this moment: of this front, and some of the whole gateway."""
    gauges: dict[f.Family, dict[Labels, float]] = {
        f.IN_FLIGHT: {(): services.admission.in_flight_everywhere},
        f.FRONTS: {(): 1 + len(services.presence.serving)},
        f.LOOPING: {(name,): 1 for name in services.crash_loops},
        f.ACTIONS: {(): len(services.registry)},
        f.DRAINING: {(): services.admission.is_draining},
        f.BUILD: {(services.settings.version,): 1},
        f.DEPENDENCY_UP: {(name,): up for name, up in services.health_of(look).dependencies.items()},
        **services.worker_gauges(),
    }
    if look.ledger_status is not None:
        gauges[f.UNRESOLVED] = {(): look.ledger_status.unresolved}
        gauges[f.OLDEST_UNRESOLVED] = {(): look.ledger_status.oldest_age}
        gauges[f.OUTBOX] = {(): look.ledger_status.deliveries}
        if look.ledger_status.free_bytes is not None:
            gauges[f.LEDGER_FREE] = {(): look.ledger_status.free_bytes}
        gauges |= of_the_log(services, look.ledger_status.checkpoint)
        gauges |= of_webhooks(services.webhooks.active, look.ledger_status)
        gauges |= of_events(look.ledger_status.export)
    if look.store_status is not None:
        gauges[f.PENDING] = {(): look.store_status.held}
        gauges[f.EPOCH] = {(): look.store_status.epoch}
        gauges[f.OLDEST_PENDING] = {(): look.store_status.oldest_age}
    return gauges


def of_the_log(services: Services, last: WitnessedCheckpoint | None) -> dict[f.Family, dict[Labels, float]]:
    """Gauges of the last checkpoint: its size, and how far behind it witnesses are."""
    if last is None:
        return {}
    now, lags = time.time(), dict[Labels, float]()
    for one in last.witnesses:
        since = services.memory.uptime if one.time is None else now - parse_iso(one.time)
        lags[one.name,] = 0.0 if one.size == last.size else max(0.0, since)
    return {f.CHECKPOINT_SIZE: {(): last.size}, f.WITNESS_LAG: lags}


def of_events(export: EventExport | None) -> dict[f.Family, dict[Labels, float]]:
    """The notary's counts of events for a collector."""
    if export is None:
        return {}
    return {
        f.OTLP_EVENTS: {(outcome,): count for outcome, count in export.events.items()},
        f.OTLP_EVENTS_WAITING: {(): export.waiting},
        f.OTLP_LEDGER_CHANGES: {(): export.changes},
    }


def of_webhooks(active: Iterable[str], status: LedgerHealth) -> dict[f.Family, dict[Labels, float]]:
    """The notary's counters of deliveries; active endpoints begin with 0."""
    attempts: dict[Labels, float] = {(name, outcome): 0 for name in active for outcome in ATTEMPTS}
    drops: dict[Labels, float] = {(name, reason): 0 for name in active for reason in DROPS}
    attempts |= {(name, outcome): count for name, some in status.attempts.items() for outcome, count in some.items()}
    drops |= {(name, reason): count for name, some in status.drops.items() for reason, count in some.items()}
    return {f.WEBHOOK_DELIVERIES: attempts, f.WEBHOOK_DROPS: drops}
