"""Holding a call: the plan is stored, the agent gets an approval id, and time runs.

Guarantees: the same call twice is one hold with one debit; a session has a bounded number of holds. A hold is evident
(audit event) before the agent hears of it, and one without evidence never waits for an operator.
"""

import math
from dataclasses import dataclass

import trio

from frontend.actions.planning import Draft
from frontend.calls.approvals.record import Body, Outcome, encode
from frontend.calls.approvals.states import CLAIMED, FAILED, MAX_PENDING_PER_SESSION, PENDING, TTL_SECONDS
from frontend.calls.execution import CLEAN_UP_SECONDS
from frontend.calls.journal import Journal
from frontend.calls.record import CallRecord
from frontend.clock import Clock
from frontend.errors import GateError
from frontend.identifiers import new
from frontend.stores.interface import ApprovalRecord, Store, StoreUnavailable
from frontend.telemetry.logs import log
from ipc.plan import Plan, plan_hash


@dataclass(frozen=True, slots=True)
class Holds:
    """Stores pending approvals."""

    clock: Clock
    store: Store
    journal: Journal
    front_id: str

    async def repeated(self, record: CallRecord, drafted: Draft) -> ApprovalRecord | None:
        """The hold of this very call, if it is pending: answered again, with an event, without a second debit."""
        try:
            approval = await self.store.approval_pending(
                drafted.session_id, drafted.action.action_id, drafted.request_hash, self.clock.now()
            )
        except StoreUnavailable as error:
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if approval is not None:
            await self.journal.decided(record, "pending_approval", approval_id=approval.approval_id, is_repeated=True)
        return approval

    async def hold(self, record: CallRecord, plan: Plan, has_budget: bool) -> ApprovalRecord:
        """The hold that is in force for this call, with its event; the caller has debited.

        `record.is_spent` says whether the debit stays with it: not when the same call won a race, nor with an error.
        Raises GateError: too_many_pending_approvals, approval_store_unavailable, evidence_persistence_failed,
        clock_error.
        """
        now = self.clock.now()
        body = Body(plan, plan_hash(plan), record.identity_method or "", has_budget)
        approval = ApprovalRecord(
            approval_id=new("apr_"), session_id=plan.session_id, action_id=plan.action_id,
            request_hash=plan.request_hash, state=PENDING, created_at=now, expires_at=now + TTL_SECONDS,
            body=encode(body),
        )  # fmt: skip
        held = await self._stored(record, approval, now)
        if held.approval_id != approval.approval_id:
            record.calls_after = record.calls_before
            await self.journal.decided(record, "pending_approval", approval_id=held.approval_id, is_repeated=True)
            return held
        try:
            await self.journal.decided(record, "pending_approval", approval_id=held.approval_id)
        except (GateError, trio.Cancelled):
            record.is_spent = not await self._withdraw(approval)
            raise
        record.is_spent = True
        return held

    async def _stored(self, record: CallRecord, approval: ApprovalRecord, now: float) -> ApprovalRecord:
        try:
            hold = await self.store.approval_hold(approval, MAX_PENDING_PER_SESSION, now)
        except (StoreUnavailable, trio.Cancelled) as error:
            # What came too late for us may be done all the same, and would wait for an operator without evidence.
            record.is_spent = not await self._withdraw(approval)
            if isinstance(error, trio.Cancelled):
                raise
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if hold.record is None:
            seconds = None if hold.free_at is None else math.ceil(hold.free_at - now)
            raise GateError("too_many_pending_approvals", retry_after=seconds)
        return hold.record

    async def _withdraw(self, approval: ApprovalRecord) -> bool:
        """End a hold without evidence; True when it is certain that it never runs. Never raises."""
        outcome = encode(Outcome(error_code="evidence_persistence_failed"))
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
            try:
                moved = await self._move(approval, PENDING, CLAIMED, outcome)
                return (
                    await self._move(approval, CLAIMED, FAILED, outcome) if moved else not await self._exists(approval)
                )
            except StoreUnavailable as error:
                log.error(
                    "a hold without evidence could not be withdrawn", approval_id=approval.approval_id, cause=str(error)
                )
        return False

    async def _move(self, approval: ApprovalRecord, before: str, after: str, outcome: str) -> bool:
        moved = await self.store.approval_move(
            approval.approval_id, before, after, outcome=outcome, holder=self.front_id
        )  # fmt: skip
        return moved is not None

    async def _exists(self, approval: ApprovalRecord) -> bool:
        return await self.store.approval_get(approval.approval_id) is not None
