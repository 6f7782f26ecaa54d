"""A ledger whose writes are timed and counted, and whose walks are, whatever backend it is.

Reads pass through: they are off the way of a call.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import Intent, Ledger, OutboxRow, VerifyReport
from frontend.evidence.receipts import Receipt
from frontend.telemetry.metrics import EVENT, INTENT, RECEIPT, Metrics


def measured(ledger: Ledger, metrics: Metrics) -> Ledger:
    """`ledger` with its writes and walks measured."""
    return cast(Ledger, _Measured(ledger, metrics))


class _Measured:
    def __init__(self, ledger: Ledger, metrics: Metrics) -> None:
        self._ledger = ledger
        self._metrics = metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def begin(self, intent: Intent) -> None:
        """See Ledger."""
        await self._timed(INTENT, self._ledger.begin(intent))

    async def record(
        self, *, receipt: Receipt | None, event: AuditEvent, outbox: tuple[OutboxRow, ...] = (),
        intent_id: str | None = None,
    ) -> None:  # fmt: skip
        """See Ledger."""
        written = self._ledger.record(receipt=receipt, event=event, outbox=outbox, intent_id=intent_id)
        await self._timed(EVENT if receipt is None else RECEIPT, written)

    async def append(self, event: AuditEvent, outbox: tuple[OutboxRow, ...] = ()) -> None:
        """See Ledger."""
        await self._timed(EVENT, self._ledger.append(event, outbox))

    async def verify(self, progress: Callable[[int], None] | None = None) -> VerifyReport:
        """See Ledger."""
        report = await self._ledger.verify(progress)
        self._metrics.verifications.add("intact" if report.intact else "broken")
        return report

    async def _timed(self, operation: str, written: Awaitable[None]) -> None:
        began = time.perf_counter()
        try:
            await written
        except Exception:
            self._metrics.audit_errors.add(operation)
            raise
        finally:
            self._metrics.ledger_seconds.observe(time.perf_counter() - began, operation)
