"""/v1/admin/webhooks: endpoints that are notified, what was given up, an attempt to try one, and sending again."""

from typing import Literal

import msgspec

from contract.webhooks import DeadLetter, Redelivered, TestedWebhook, WebhookEndpoint, WebhookList
from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.webhooks import RedeliverRequest, WebhooksQuery
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.backends.webhooks import status_of
from ipc.evidence.events import WEBHOOK_TESTED, WEBHOOKS_REDELIVERED
from ipc.operations.deliveries import ListDeliveries, RedeliverDeliveries
from ipc.process.clock import iso


@codes("ledger_unavailable")
async def listing(services: Services, query: WebhooksQuery, _operator: OperatorCaller) -> WebhookList:
    """List endpoints with what waits for them, and what was given up. Names only: addresses are often credentials."""
    with notary_errors_as("ledger_unavailable"):
        deliveries = await services.notary.ask(ListDeliveries(query.endpoint, query.limit))
    gone = services.webhooks.gone
    states: dict[str, Literal["active", "disabled", "gone"]] = {
        row.name: "disabled" if row.disable else "gone" if row.name in gone else "active"
        for row in services.webhooks.rows
    }
    names = sorted({*states, *deliveries.waiting, *deliveries.given_up})
    return WebhookList(
        endpoints=tuple(
            WebhookEndpoint(
                name=name, state=states.get(name, "removed"), waiting=deliveries.waiting.get(name, 0),
                given_up=deliveries.given_up.get(name, 0),
            )
            for name in names
        ),
        dead_letters=tuple(
            DeadLetter(
                event_id=one.event_id, endpoint=one.endpoint, type=one.kind, attempts=one.attempts,
                given_up_at=iso(one.at / 1000), error=one.error, status=status_of(one.error),
            )
            for one in deliveries.letters
        ),
    )  # fmt: skip


@codes("evidence_store_unavailable")
async def test(services: Services, operator: OperatorCaller, endpoint: str) -> TestedWebhook:
    """Send a signed `webhook.test` to an endpoint now, once, and report the result. It is not retried.

    The event is written before anything is sent.
    """
    _known(services, endpoint)
    await services.journal.operator_act(WEBHOOK_TESTED, operator, reason=f"endpoint {endpoint}")
    told, event_id = await services.webhooks.test(endpoint)
    fields = {"name": endpoint, "outcome": told.kind, "status": told.status, "error": told.error or None}
    return msgspec.convert(fields | {"event_id": event_id}, TestedWebhook)


@codes("evidence_store_unavailable")
async def redeliver(services: Services, body: RedeliverRequest, operator: OperatorCaller, endpoint: str) -> Redelivered:
    """Put dead letters of an endpoint back among what waits, the oldest hundred or that of one event;
    with `status` only those that were refused with one of these.

    They are sent again from the first attempt on; receivers know them by their `webhook-id`.
    """
    _known(services, endpoint)
    event = services.journal.operator_event(WEBHOOKS_REDELIVERED, operator)
    with notary_errors_as("evidence_store_unavailable"):
        moved = await services.notary.ask(
            RedeliverDeliveries(
                endpoint, body.event_id, int(services.clock.now() * 1000), event, tuple(body.status or ())
            )
        )
    return Redelivered(name=endpoint, redelivered=moved.count, left=moved.left)


def _known(services: Services, name: str) -> None:
    """Raises GateError webhook_not_found for an endpoint to which nothing is sent."""
    if name not in services.webhooks.active:
        raise GateError("webhook_not_found")
