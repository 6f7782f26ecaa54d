"""Approvals that were claimed and not settled: by a front that died, or by this one while the store failed. And holds
that a front stored and did not live to tell of.

What the ledger holds decides how each of them ends; nothing is executed. Guarantees that of several fronts one ends an
approval, that its call is given back only when nothing was dispatched, and that its end is in evidence; that a hold
which waits is in evidence too, so that whoever is to decide hears of it.
"""

from dataclasses import dataclass

import msgspec

from frontend.calls.approvals.record import call_record_of, readable_body
from frontend.calls.approvals.states import APPROVED, DENIED, FAILED, PENDING
from frontend.calls.approvals.transitions import Transitions
from frontend.calls.budgets import Budgets
from frontend.calls.journal import Journal
from frontend.errors import GateError
from frontend.evidence.events import ACTION_CALL, APPROVAL_DENIED
from frontend.evidence.ledger import EventQuery, Ledger
from frontend.stores.interface import ApprovalRecord, Store
from frontend.telemetry.logs import log

HOLDS_AT_START = 100
"""The newest ones: what was under way when a front died are the last that were stored."""


class _Seen(msgspec.Struct):
    event_type: str
    decision: str | None = None
    deny_reason: str | None = None


class _End(msgspec.Struct, frozen=True):
    """How an approval ends. `is_told`: an event says so already; `is_spent`: something was dispatched."""

    state: str
    found: dict[str, str | None]
    is_told: bool
    is_spent: bool


@dataclass(frozen=True, slots=True)
class Recovery:
    """Ends what nobody is settling. Methods raise StoreUnavailable, LedgerUnavailable and GateError clock_error."""

    store: Store
    ledger: Ledger
    journal: Journal
    budgets: Budgets
    transitions: Transitions

    async def at_start(self, live_fronts: tuple[str, ...]) -> int:
        """End approvals that a front claimed and did not live to settle. Returns how many. Raises GateError
        evidence_persistence_failed for a hold that can't be told of."""
        await self._tell_holds()
        return await self._end_all(await self.store.approval_claimed_by_others(live_fronts))

    async def of_own(self) -> int:
        """End approvals of this front that no task of it is settling any more. Returns how many."""
        return await self._end_all(await self.transitions.unresolved_claims())

    async def _tell_holds(self) -> None:
        """Write the event that a front died before: the same call again is answered as a hold that is known."""
        now = self.transitions.clock.now()
        for approval in await self.store.approval_list((PENDING,), HOLDS_AT_START):
            body = readable_body(approval)
            if body is None or approval.expires_at <= now:
                continue
            query = EventQuery(trace_id=body.plan.trace_id, decision="pending_approval", limit=1)
            if not await self.ledger.query(query):
                log.warning("a hold was left without evidence", approval_id=approval.approval_id)
                record = call_record_of(approval, self.journal.weakened)
                await self.journal.decided(record, "pending_approval", approval_id=approval.approval_id)

    async def _end_all(self, records: list[ApprovalRecord]) -> int:
        return sum([await self._finish(approval, await self._end_of(approval)) for approval in records])

    async def _end_of(self, approval: ApprovalRecord) -> _End:
        receipt_id = await self.ledger.receipt_of_approval(approval.approval_id)
        if receipt_id is not None:
            return _End(APPROVED, {"receipt_id": receipt_id}, is_told=True, is_spent=True)
        seen = await self._seen(approval)
        is_told = any(event.event_type == ACTION_CALL and event.decision != "pending_approval" for event in seen)
        if await self.ledger.intent_of_approval(approval.approval_id) is not None:
            # Dispatched, and nobody knows what it did: never executed again, shown as an unresolved intent.
            return _End(FAILED, {"error_code": "evidence_persistence_failed"}, is_told=is_told, is_spent=True)
        for event in seen:
            if event.event_type == APPROVAL_DENIED:
                return _End(DENIED, {"deny_reason": event.deny_reason}, is_told=True, is_spent=False)
        return _End(FAILED, {"error_code": "interrupted"}, is_told=is_told, is_spent=False)

    async def _seen(self, approval: ApprovalRecord) -> list[_Seen]:
        body = readable_body(approval)
        if body is None:
            return []
        events = await self.ledger.query(EventQuery(trace_id=body.plan.trace_id))
        return [seen for event in events if (seen := _seen(event)) is not None]

    async def _finish(self, approval: ApprovalRecord, end: _End) -> bool:
        if not await self.transitions.end(approval, end.state, **end.found):
            return False
        log.warning(
            "an approval was left claimed", approval_id=approval.approval_id, holder=approval.holder, ends=end.state
        )
        record, body = call_record_of(approval, self.journal.weakened), readable_body(approval)
        if not end.is_spent and body is not None and body.has_budget:
            await self.budgets.give_back(record, approval.session_id)
        if not end.is_told:
            try:
                await self.journal.decided(
                    record, "error", approval_id=approval.approval_id, session_id=approval.session_id,
                    error_code=end.found["error_code"], reason="left claimed by a front that did not settle it",
                )  # fmt: skip
            except GateError as error:
                log.error("an interrupted approval left no event", trace_id=record.trace_id, cause=error.cause)
        return True


def _seen(event: bytes) -> _Seen | None:
    try:
        return msgspec.json.decode(event, type=_Seen)
    except ValueError:  # somebody changed the ledger: that is for `verify` to say, and no reason not to start
        return None
