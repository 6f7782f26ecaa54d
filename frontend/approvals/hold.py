"""Holding a call: the plan is stored, the agent gets an approval id, and time runs.

Guarantees: the same call twice is one hold with one debit; a session has a bounded number of holds; a hold that
expires gives its call back. A hold is evident (audit event) before the agent hears of it.
"""

from dataclasses import dataclass
from typing import Any

import structlog
import trio

from frontend.actions.planning import Draft
from frontend.approvals.record import Body, Outcome, body_of, encode
from frontend.approvals.states import (
    CLAIMED,
    FAILED,
    KEEP_ENDED_SECONDS,
    MAX_PENDING_PER_SESSION,
    PENDING,
    TTL_SECONDS,
)  # fmt: skip
from frontend.budgets import Budgets
from frontend.case import Case
from frontend.clock import Clock, ClockError
from frontend.errors import GateError
from frontend.evidence.ledger import Ledger, LedgerUnavailable
from frontend.execution import NotDispatched
from frontend.identifiers import new
from frontend.stores.interface import ApprovalRecord, Store, StoreUnavailable
from frontend.telemetry.marks import Marks
from ipc.plan import Plan, plan_hash

log = structlog.get_logger()

SWEEP_SECONDS = 1.0
EXPIRE_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Pending:
    """A hold in force. `is_repeat`: another call of the same request holds it already."""

    record: ApprovalRecord
    is_repeat: bool


@dataclass(frozen=True, slots=True)
class Holds:
    """Stores pending approvals and ends those that nobody decided."""

    clock: Clock
    store: Store
    ledger: Ledger
    budgets: Budgets
    marks: Marks
    front_id: str

    async def repeated(self, case: Case, drafted: Draft) -> ApprovalRecord | None:
        """The hold of this very call, if it is pending: answered again, with an event, without a second debit."""
        try:
            record = await self.store.approval_pending(
                drafted.session_id, drafted.action.action_id, drafted.request_hash, self.clock.now()
            )
        except StoreUnavailable as error:
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if record is not None:
            await self._append(case, record)
        return record

    async def hold(self, case: Case, plan: Plan, has_budget: bool) -> Pending:
        """Store the plan as pending and write the event. The caller has debited.

        `is_repeat` says that the same call won a race: the caller gives its own debit back. Raises
        NotDispatched with too_many_pending_approvals, approval_store_unavailable or evidence_persistence_failed.
        """
        now = self.clock.now()
        body = Body(plan, plan_hash(plan), case.identity_method or "", has_budget)
        record = ApprovalRecord(
            approval_id=new("apr_"), session_id=plan.session_id, action_id=plan.action_id,
            request_hash=plan.request_hash, state=PENDING, created_at=now, expires_at=now + TTL_SECONDS,
            body=encode(body),
        )  # fmt: skip
        try:
            hold = await self.store.approval_hold(record, MAX_PENDING_PER_SESSION, now)
        except StoreUnavailable as error:
            raise NotDispatched("approval_store_unavailable", cause=str(error)) from None
        if hold.kind == "too_many" or hold.record is None:
            raise NotDispatched("too_many_pending_approvals")
        try:
            await self._append(case, hold.record)
        except GateError as error:
            if hold.kind == "stored":
                await self._withdraw(record)
            raise NotDispatched(error.code, cause=error.cause) from None
        return Pending(hold.record, hold.kind == "existing")

    async def _append(self, case: Case, record: ApprovalRecord) -> None:
        try:
            await self.ledger.append(case.event(self.clock, "pending_approval", approval_id=record.approval_id))
        except LedgerUnavailable as error:
            raise GateError("evidence_persistence_failed", cause=str(error)) from None

    async def _withdraw(self, record: ApprovalRecord) -> None:
        """A hold without evidence must not wait for an operator."""
        outcome = encode(Outcome(error_code="evidence_persistence_failed", completed_at=self.clock.iso()))
        try:
            for before, after in ((PENDING, CLAIMED), (CLAIMED, FAILED)):
                await self.store.approval_move(record.approval_id, before, after, outcome=outcome, holder=self.front_id)
        except StoreUnavailable as error:
            log.error(
                "a hold without evidence could not be withdrawn", approval_id=record.approval_id, cause=str(error)
            )

    async def run(self) -> None:
        """End what nobody decided, forget what is long over; for ever, a second apart."""
        while True:
            try:
                await self.expire()
                await self.store.sweep(self.clock.now(), KEEP_ENDED_SECONDS)
            except (StoreUnavailable, LedgerUnavailable, ClockError) as error:
                log.warning("holds could not be swept", cause=str(error))
            await trio.sleep(SWEEP_SECONDS)

    async def expire(self) -> int:
        """One round: expired holds get their event and give their call back. Returns how many."""
        expired = await self.store.approval_expire(self.clock.now(), EXPIRE_AT_ONCE)
        for record in expired:
            body = body_of(record)
            case = Case(record.action_id, self.marks, body.plan.trace_id, plan=body.plan)
            found: dict[str, Any] = {"approval_id": record.approval_id, "reason": "five minutes without a decision"}
            await self.ledger.append(case.event(self.clock, "deny", event_type="ApprovalExpired", **found))
            if body.has_budget:
                await self.budgets.refund(record.session_id)
        return len(expired)
