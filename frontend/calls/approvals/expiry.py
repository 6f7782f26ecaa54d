"""Holds that nobody decided: five minutes, then expired, with evidence, and the call given back.

The store says who ends a hold; its event and its refund come after that, so what the ledger did not take is tried
again, and what a front did not live to write is written at the next start. Given back at most once: a refund that a
crash prevents stays undone.
"""

from collections import deque
from dataclasses import dataclass, field

import trio

from frontend.calls.approvals.record import call_record_of, readable_body
from frontend.calls.approvals.states import EXPIRED
from frontend.calls.budgets import Budgets
from frontend.calls.execution import CLEAN_UP_SECONDS
from frontend.calls.journal import Journal
from frontend.clock import Clock
from frontend.errors import GateError
from frontend.evidence.events import APPROVAL_EXPIRED
from frontend.evidence.ledger import EventQuery
from frontend.stores.interface import ApprovalRecord, Store

AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Expiry:
    """Ends what is over. `unproven` are holds that this front has ended and the ledger has not heard of."""

    clock: Clock
    store: Store
    journal: Journal
    budgets: Budgets
    unproven: deque[ApprovalRecord] = field(default_factory=deque)

    async def expire(self) -> int:
        """One round; returns how many. Raises StoreUnavailable, GateError clock_error and
        evidence_persistence_failed: the next round goes on where this one ended."""
        if not self.unproven:
            self.unproven.extend(await self.store.approval_expire(self.clock.now(), AT_ONCE))
        count = 0
        while self.unproven:
            try:
                await self._prove(self.unproven[0])
            except GateError:
                self.unproven.rotate(-1)  # so that one that can't be written does not stand in the others' way
                raise
            self.unproven.popleft()
            count += 1
        return count

    async def recover(self) -> int:
        """At start: write what a front ended and did not live to prove; returns how many.

        Raises StoreUnavailable, LedgerUnavailable, GateError.
        """
        count = 0
        for approval in await self.store.approval_list((EXPIRED,), 2 * AT_ONCE):
            body = readable_body(approval)
            if body is None:
                continue
            query = EventQuery(trace_id=body.plan.trace_id, event_type=APPROVAL_EXPIRED, limit=1)
            if not await self.journal.ledger.query(query):
                await self._prove(approval)
                count += 1
        return count

    async def _prove(self, approval: ApprovalRecord) -> None:
        record, body = call_record_of(approval, self.journal.weakened), readable_body(approval)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
            await self.journal.noted(
                record, APPROVAL_EXPIRED, "deny", approval_id=approval.approval_id, session_id=approval.session_id,
                reason="five minutes without a decision",
            )  # fmt: skip
            record.say("deny", "approval_expired")
            if body is not None and body.has_budget:
                await self.budgets.give_back(record, approval.session_id)
