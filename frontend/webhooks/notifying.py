"""A ledger that is told of events and writes with each what is to be delivered because of it.

One transaction holds both, so that no event's notification is forgotten and none is of what did not happen.
"""

from typing import Any, cast

from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import Ledger, OutboxRow
from frontend.evidence.receipts import Receipt
from frontend.webhooks.webhooks import Webhooks


def notifying(ledger: Ledger, webhooks: Webhooks) -> Ledger:
    """`ledger` with deliveries for every event; itself where nobody is to be notified."""
    return cast(Ledger, _Notifying(ledger, webhooks)) if webhooks.is_active else ledger


class _Notifying:
    def __init__(self, ledger: Ledger, webhooks: Webhooks) -> None:
        self._ledger = ledger
        self._webhooks = webhooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def record(
        self, *, receipt: Receipt | None, event: AuditEvent, outbox: tuple[OutboxRow, ...] = (),
        intent_id: str | None = None,
    ) -> None:  # fmt: skip
        """See Ledger."""
        rows = self._webhooks.rows_for(event)
        try:
            await self._ledger.record(receipt=receipt, event=event, outbox=outbox + rows, intent_id=intent_id)
        except BaseException:
            self._webhooks.not_written(rows)
            raise
        self._webhooks.written(rows)

    async def append(self, event: AuditEvent, outbox: tuple[OutboxRow, ...] = ()) -> None:
        """See Ledger."""
        rows = self._webhooks.rows_for(event)
        try:
            await self._ledger.append(event, outbox + rows)
        except BaseException:
            self._webhooks.not_written(rows)
            raise
        self._webhooks.written(rows)
