"""Settling a hold: approve executes the stored plan once, deny ends it, recovery ends what a dead front left claimed.

Guarantees: of any number of operators one wins and the others get 404; what runs is the stored plan and nothing
re-derived; the decision is durable evidence before anything is dispatched. Never asks policy again.
"""

from dataclasses import dataclass
from typing import Any

import structlog

from frontend.actions.registry import Registry
from frontend.approvals.record import Body, Outcome, body_of, encode, is_intact, outcome_of
from frontend.approvals.states import APPROVED, CLAIMED, DENIED, FAILED, PENDING, check_move
from frontend.authentication import OperatorCaller
from frontend.budgets import Budgets
from frontend.case import Case
from frontend.clock import Clock
from frontend.errors import GateError
from frontend.evidence.grants import ApprovalBinding
from frontend.evidence.ledger import Ledger, LedgerUnavailable
from frontend.execution import Executed, Execution, NotDispatched
from frontend.stores.interface import ApprovalRecord, Store, StoreUnavailable
from frontend.telemetry.marks import Marks

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Approved:
    """What the operator's approve came to."""

    executed: Executed
    approval_id: str
    operator: OperatorCaller
    plan_hash: str

    def body(self) -> dict[str, Any]:
        """The execution result with its `approval` (docs/decisions.md, "Approvals")."""
        return self.executed.body() | {
            "approval": {
                "approval_id": self.approval_id,
                "decision": "approved",
                "approved_by": self.operator.name,
                "approval_hash": self.plan_hash,
                "operator_authn_method": "dpop",
                "operator_sender_binding": self.operator.jkt,
                "operator_proof_jti": self.operator.proof_jti,
            }
        }


@dataclass(frozen=True, slots=True)
class Settlement:
    """Decides held calls, on an operator's word."""

    clock: Clock
    store: Store
    ledger: Ledger
    budgets: Budgets
    execution: Execution
    marks: Marks
    front_id: str

    async def approve(self, approval_id: str, operator: OperatorCaller, registry: Registry) -> Approved:
        """Execute the stored plan. Raises approval_not_found to whoever loses, plan_integrity when the world has
        moved on since the hold, and whatever Execution raises."""
        record = await self._claim(approval_id, operator)
        body = body_of(record)
        case = Case(record.action_id, self.marks, body.plan.trace_id, plan=body.plan)
        case.identity_method = body.identity_method
        try:
            await self._recheck(body, registry)
            await self._evidence(case, "ApprovalGranted", "allow", record, operator)
            binding = ApprovalBinding(approval_id, operator.name, operator.jkt, operator.proof_jti)
            executed = await self.execution.run(case, body.plan, binding)
        except GateError as error:
            await self._failed(case, record, body, error)
            raise
        await self._end(record, APPROVED, receipt_id=executed.receipt.receipt_id)
        return Approved(executed, approval_id, operator, body.plan_hash)

    async def deny(self, approval_id: str, operator: OperatorCaller, reason: str | None) -> dict[str, Any]:
        """End the hold without executing; the call goes back to the session's budget."""
        record = await self._claim(approval_id, operator)
        body = body_of(record)
        case = Case(record.action_id, self.marks, body.plan.trace_id, plan=body.plan)
        try:
            await self._evidence(case, "ApprovalDenied", "deny", record, operator, deny_reason=reason)
        except GateError as error:
            await self._failed(case, record, body, error)
            raise
        await self._end(record, DENIED, deny_reason=reason)
        await self._refund(body)
        return {
            "decision": "deny",
            "trace_id": body.plan.trace_id,
            "action_id": record.action_id,
            "approval_id": approval_id,
            "denied_by": operator.name,
            "deny_reason": reason,
        }

    async def recover(self, live_fronts: tuple[str, ...]) -> int:
        """At start: end approvals that a front claimed and did not live to settle. Returns how many."""
        orphans = await self.store.approval_claimed_by_others(live_fronts)
        for record in orphans:
            receipt_id = await self.ledger.receipt_of_approval(record.approval_id)
            if receipt_id is not None:
                await self._end(record, APPROVED, receipt_id=receipt_id)
            elif await self.ledger.intent_of_approval(record.approval_id) is not None:
                # Dispatched, and nobody knows what it did: never executed again, shown as an unresolved intent.
                await self._end(record, FAILED, error_code="evidence_persistence_failed")
            else:
                await self._end(record, FAILED, error_code="interrupted")
                await self._refund(body_of(record))
            log.warning("an approval was left claimed by a front that died", approval_id=record.approval_id)
        return len(orphans)

    async def _claim(self, approval_id: str, operator: OperatorCaller) -> ApprovalRecord:
        now = self.clock.now()
        outcome = encode(Outcome(claimed_by=operator.name, claimed_at=self.clock.iso(now)))
        check_move(PENDING, CLAIMED)
        try:
            record = await self.store.approval_move(
                approval_id, PENDING, CLAIMED, outcome=outcome, holder=self.front_id, unexpired_at=now
            )
        except StoreUnavailable as error:
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if record is None:
            raise GateError("approval_not_found")
        return record

    async def _recheck(self, body: Body, registry: Registry) -> None:
        if not is_intact(body):
            raise NotDispatched("plan_integrity", cause="the stored plan does not hash to its stored hash")
        if not registry.has_module(body.plan.provider_module_digest):
            raise NotDispatched("plan_integrity", cause="the plan's module is not trusted any more")
        try:
            epoch = await self.store.epoch()
        except StoreUnavailable as error:
            raise NotDispatched("approval_store_unavailable", cause=str(error)) from None
        if epoch > body.plan.epoch:
            raise NotDispatched("plan_integrity", cause=f"epoch {body.plan.epoch} was revoked, {epoch} is in force")

    async def _evidence(
        self, case: Case, kind: str, decision: str, record: ApprovalRecord, operator: OperatorCaller, **found: Any
    ) -> None:
        event = case.event(
            self.clock, decision, event_type=kind, approval_id=record.approval_id, approved_by=operator.name,
            operator_sender_binding=operator.jkt, operator_proof_jti=operator.proof_jti, **found,
        )  # fmt: skip
        try:
            await self.ledger.append(event)
        except LedgerUnavailable as error:
            raise NotDispatched("evidence_persistence_failed", cause=str(error)) from None

    async def _failed(self, case: Case, record: ApprovalRecord, body: Body, error: GateError) -> None:
        """Nothing was dispatched, or its evidence is missing: the approval is over either way."""
        await self._end(record, FAILED, error_code=error.code)
        if not isinstance(error, NotDispatched):
            return
        await self._refund(body)
        try:
            event = case.event(
                self.clock, "error", approval_id=record.approval_id, error_code=error.code, reason=error.cause
            )
            await self.ledger.append(event)
        except LedgerUnavailable as problem:
            log.error("a failed approval left no event", trace_id=case.trace_id, cause=str(problem))

    async def _end(self, record: ApprovalRecord, state: str, **found: str | None) -> None:
        check_move(CLAIMED, state)
        outcome = Outcome(
            claimed_by=outcome_of(record).claimed_by,
            claimed_at=outcome_of(record).claimed_at,
            completed_at=self.clock.iso(),
            **found,
        )
        try:
            moved = await self.store.approval_move(
                record.approval_id, CLAIMED, state, outcome=encode(outcome), holder=None
            )
        except StoreUnavailable as error:
            # The evidence is in the ledger; recovery at the next start finds the claim and ends it.
            log.error("an approval could not be ended", approval_id=record.approval_id, cause=str(error))
            return
        if moved is None:
            log.error("an approval was ended by somebody else", approval_id=record.approval_id, state=state)

    async def _refund(self, body: Body) -> None:
        if body.has_budget:
            await self.budgets.refund(body.plan.session_id)
