"""The operator's calls about webhooks. No I/O."""

from collections.abc import Sequence
from typing import Any

from gateway_client.contract.webhooks import Redelivered, TestedWebhook, WebhookList
from gateway_client.operating.calls import OperatorCalls
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import path_of, query_of
from gateway_client.wire.flows import Flow


class WebhooksCore(OperatorCalls):
    """Every method gives a flow of one call and its typed result."""

    def webhooks(self, endpoint: str | None = None, limit: int | None = None) -> Flow[WebhookList]:
        """Endpoints with what waits for them, and what was given up, the newest first; `limit` up to 500."""
        answer = yield from self.read(path_of("v1", "admin", "webhooks"), query_of(endpoint=endpoint, limit=limit))
        return decode(WebhookList, answer.json(), "webhooks")

    def test_webhook(self, name: str) -> Flow[TestedWebhook]:
        """Have one notification sent to an endpoint now. Raises NotFound."""
        answer = yield from self.change("POST", path_of("v1", "admin", "webhooks", name, "test"))
        return decode(TestedWebhook, answer.json(), "tested webhook")

    def redeliver_webhook(
        self, name: str, event_id: str | None = None, statuses: Sequence[int] = ()
    ) -> Flow[Redelivered]:
        """Have what was given up sent again: that of one event, or the oldest hundred; with `statuses` only those that
        the receiver refused with one of these. Raises NotFound."""
        body: dict[str, Any] = {} if event_id is None else {"event_id": event_id}
        body |= {"status": list(statuses)} if statuses else {}
        answer = yield from self.change("POST", path_of("v1", "admin", "webhooks", name, "redeliver"), body)
        return decode(Redelivered, answer.json(), "redelivered webhooks")
