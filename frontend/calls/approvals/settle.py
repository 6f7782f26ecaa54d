"""Settling a hold on an operator's word: approve executes the stored plan once, deny ends it.

Guarantees: of any number of operators one wins and the others get 404; what runs is the stored plan and nothing
re-derived; the decision is durable evidence before anything is dispatched. Never asks policy again.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from frontend.actions.registry import Registry
from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.learning import NO_WISH, Learning, Wish
from frontend.calls.approvals.record import Body, body_of, call_record_of, is_intact, readable_body
from frontend.calls.approvals.states import APPROVED, DENIED, FAILED, PENDING, state_at
from frontend.calls.approvals.transitions import Transitions
from frontend.calls.budgets import Budgets
from frontend.calls.execution import Executed, Execution
from frontend.calls.journal import Journal
from frontend.calls.record import CallRecord
from frontend.contract.approvals import Denied
from frontend.contract.execution import ApprovalNote, ExecutionResult
from frontend.egress.proxy_list import AllowList, ListNotWritten
from frontend.errors import GateError
from frontend.evidence.events import APPROVAL_DENIED, APPROVAL_GRANTED
from frontend.evidence.grants import ApprovalBinding
from frontend.stores.interface import ApprovalRecord, Store, StoreUnavailable
from frontend.telemetry.logs import log, trace_id
from ipc.plan import Plan

SETTLE_SECONDS = 3.0
"""What an answer waits for the egress proxy's list to be narrow again, when a call was let through."""


@dataclass(frozen=True, slots=True)
class Approved:
    """What the operator's approve came to."""

    executed: Executed
    approval_id: str
    operator: OperatorCaller
    plan_hash: str
    learned: dict[str, str] = field(default_factory=dict)

    def body(self) -> ExecutionResult:
        """The execution result with its `approval`."""
        note = ApprovalNote(
            approval_id=self.approval_id,
            approved_by=self.operator.name,
            approval_hash=self.plan_hash,
            operator_sender_binding=self.operator.jkt,
            operator_proof_jti=self.operator.proof_jti,
        )
        return msgspec.structs.replace(self.executed.body(), approval=note, **self.learned)


@dataclass(frozen=True, slots=True)
class Settlement:
    """Decides held calls. What a task of it leaves claimed is ended by frontend/calls/approvals/recovery.py."""

    store: Store
    journal: Journal
    budgets: Budgets
    execution: Execution
    transitions: Transitions
    learning: Learning
    allow_list: AllowList
    proxy_url: str | None
    """Of the egress proxy that is configured."""

    async def approve(
        self, approval_id: str, operator: OperatorCaller, registry: Registry, wish: Wish = NO_WISH
    ) -> Approved:
        """Execute the stored plan, and learn what the operator wishes once that went well.

        Raises approval_not_found to whoever loses, plan_integrity when the world has moved on since the hold,
        allowlist_sync_failed when the egress proxy could not be told, and whatever Execution raises; what
        Learning.check raises before anything is claimed.
        """
        if wish != NO_WISH:
            await self._check_wish(approval_id, wish)
        async with AsyncExitStack() as passage:
            with self._at_work(approval_id):
                approval = await self.transitions.claim(approval_id, operator)
                record = self._opened(approval)
                try:
                    body = await self._recheck(approval, registry)
                    await self._evidence(
                        record, APPROVAL_GRANTED, "allow", approval, operator, reason=str(wish) or None
                    )
                    await self._let_through(body.plan, passage)
                    binding = ApprovalBinding(approval_id, operator.name, operator.jkt, operator.proof_jti)
                    executed = await self.execution.run(record, body.plan, binding)
                except Exception as error:
                    raise await self._failed(record, approval, error) from None
                await self.transitions.end(approval, APPROVED, receipt_id=executed.receipt.receipt_id)
            if executed.succeeded:
                record.say("allow")
                learned = await self.learning.learn(wish, executed, operator, approval_id)
                return Approved(executed, approval_id, operator, body.plan_hash, learned)
            record.say("error", "action_execution_failed", executed.conclusion.detail["outcome"])
            return Approved(executed, approval_id, operator, body.plan_hash)

    async def deny(self, approval_id: str, operator: OperatorCaller, reason: str | None) -> Denied:
        """End the hold without executing; the call goes back to the session's budget."""
        with self._at_work(approval_id):
            approval = await self.transitions.claim(approval_id, operator)
            record = self._opened(approval)
            try:
                await self._evidence(record, APPROVAL_DENIED, "deny", approval, operator, deny_reason=reason)
            except Exception as error:
                raise await self._failed(record, approval, error) from None
            if await self.transitions.end(approval, DENIED, deny_reason=reason):
                await self._give_back(record, approval)
        record.say("deny", "approval_denied")
        return Denied(
            trace_id=record.trace_id,
            action_id=approval.action_id,
            approval_id=approval_id,
            denied_by=operator.name,
            deny_reason=reason,
        )

    async def _check_wish(self, approval_id: str, wish: Wish) -> None:
        """What can't be learned is said while the hold still waits. Raises GateError."""
        try:
            approval = await self.store.approval_get(approval_id)
        except StoreUnavailable as error:
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if approval is None or state_at(approval.state, approval.expires_at, self.transitions.clock.now()) != PENDING:
            raise GateError("approval_not_found")
        body = readable_body(approval)
        if body is not None:  # otherwise nothing will be executed, and that is told where it ends
            self.learning.check(wish, body.plan)

    @contextmanager
    def _at_work(self, approval_id: str) -> Iterator[None]:
        self.transitions.at_work.append(approval_id)
        try:
            yield
        finally:
            self.transitions.at_work.remove(approval_id)

    def _opened(self, approval: ApprovalRecord) -> CallRecord:
        record = call_record_of(approval, self.journal.weakened)
        trace_id.set(record.trace_id)
        return record

    async def _recheck(self, approval: ApprovalRecord, registry: Registry) -> Body:
        body = body_of(approval)
        if not is_intact(body):
            raise GateError("plan_integrity", cause="the stored plan does not hash to its stored hash")
        if not registry.has_module(body.plan.provider_module_digest):
            raise GateError("plan_integrity", cause="the plan's module is not trusted any more")
        # SECURITY: at an address that was given up somebody else may listen.
        if body.plan.egress.proxy_url not in (None, self.proxy_url):
            raise GateError("plan_integrity", cause="the plan's egress proxy is not the configured one any more")
        try:
            epoch = await self.store.epoch()
        except StoreUnavailable as error:
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if epoch != body.plan.epoch:  # as for leases: a store that lost its epoch must not bring revoked holds back
            raise GateError("plan_integrity", cause=f"epoch {body.plan.epoch} of the plan, {epoch} is in force")
        return body

    async def _let_through(self, plan: Plan, passage: AsyncExitStack) -> None:
        """With live sync the egress proxy's list has what was approved, until `passage` ends: by then it is learned, or
        no more than one call was to go there."""
        if plan.egress.proxy_patience_seconds:
            wider = self.allow_list.wider(plan.unresolved_domains, settle_seconds=SETTLE_SECONDS)
            try:
                await passage.enter_async_context(wider)
            except ListNotWritten as error:
                raise GateError("allowlist_sync_failed", cause=str(error)) from None

    async def _evidence(
        self,
        record: CallRecord,
        kind: str,
        decision: str,
        approval: ApprovalRecord,
        operator: OperatorCaller,
        **found: Any,
    ) -> None:
        await self.journal.noted(
            record, kind, decision, approval_id=approval.approval_id, session_id=approval.session_id,
            approved_by=operator.name, operator_sender_binding=operator.jkt, operator_proof_jti=operator.proof_jti,
            **found,
        )  # fmt: skip

    async def _failed(self, record: CallRecord, approval: ApprovalRecord, problem: Exception) -> GateError:
        """The approval is over; returns the answer. What was dispatched and has no evidence stays claimed: by what the
        ledger turns out to hold, recovery ends it in its next round."""
        if isinstance(problem, GateError):
            error = problem
        else:
            log.error("an approval failed by a fault of ours", approval_id=approval.approval_id, exc_info=problem)
            error = GateError("internal_error")
        if not record.is_spent and await self.transitions.end(approval, FAILED, error_code=error.code):
            await self._give_back(record, approval)
        decision = "error" if error.status >= 500 else "deny"
        try:
            await self.journal.decided(
                record, decision, approval_id=approval.approval_id, session_id=approval.session_id,
                error_code=error.code, reason=error.cause,
            )  # fmt: skip
        except GateError as more:
            log.error("a failed approval left no event", trace_id=record.trace_id, cause=more.cause)
        record.say(decision, error.code, error.cause)
        return error

    async def _give_back(self, record: CallRecord, approval: ApprovalRecord) -> None:
        body = readable_body(approval)
        if body is not None and body.has_budget:
            await self.budgets.give_back(record, approval.session_id)
