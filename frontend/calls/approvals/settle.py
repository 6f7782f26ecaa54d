"""Settling a hold on an operator's word: approve executes the stored plan once, deny ends it.

Guarantees: of any number of operators one wins and the others get 404; what runs is the stored plan and nothing
re-derived; the decision is durable evidence before anything is dispatched. Never asks policy again about a plan, and
executes none while the policy engine is not known to live.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import msgspec

from contract.approvals import ApprovalGiven, Denied
from contract.execution import ApprovalNote, ExecutionResult
from contract.failures import fields_of
from frontend.actions.networks import are_in_force
from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.learning import NO_WISH, Learning, Wish
from frontend.calls.approvals.modules import HeldModules
from frontend.calls.approvals.quorums import QuorumWriter
from frontend.calls.approvals.record import body_of, call_record_of, readable_body
from frontend.calls.approvals.rights import LostRights
from frontend.calls.approvals.signatures import Signatures, SignedRequest
from frontend.calls.approvals.states import state_at
from frontend.calls.approvals.transitions import Transitions
from frontend.calls.audit_writer import bounded
from frontend.calls.ended_calls import EndedCalls
from frontend.calls.executed import ExecutedCall
from frontend.calls.execution import Execution
from frontend.calls.record import CallRecord
from frontend.deadlines import CallDeadlines
from frontend.egress.proxy_list import ListNotWritten, ProxyAllowList
from frontend.errors import GateError, errors_as
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.notary.in_force import NotaryFacts
from frontend.policy.engine import PolicyEngine
from frontend.telemetry.logs import log, trace_id
from frontend.telemetry.weakened import Weakened
from ipc.approvals import APPROVED, DENIED, FAILED, PENDING, HeldBody
from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import APPROVAL_DENIED, APPROVAL_GRANTED, AuditEvent
from ipc.keys.signed_approvals import APPROVE
from ipc.messages.exporting import NOTARY_CLAIM
from ipc.operations.calls import Approver
from ipc.operations.holds import GetHold
from ipc.plan import Plan
from ipc.settings import Settings
from ipc.texts.foreign_texts import clean_reason

APPROVE_ONLY = SignedRequest(APPROVE)


class Approved(msgspec.Struct, frozen=True):
    """The result of an approval."""

    executed: ExecutedCall
    approval_id: str
    operator: OperatorCaller
    plan_hash: str
    learned: dict[str, str] = msgspec.field(default_factory=dict)

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


class Settlement(msgspec.Struct, frozen=True):
    """Decides held calls. frontend/calls/approvals/recovery.py ends claims that a task of it leaves."""

    known: NotaryFacts
    notary: NotaryClient
    policy: PolicyEngine
    weakened: Weakened
    execution: Execution
    transitions: Transitions
    learning: Learning
    signatures: Signatures
    modules: HeldModules
    rights: LostRights
    quorums: QuorumWriter
    allow_list: ProxyAllowList
    settings: Callable[[], Settings]
    """Those in force."""
    ended: EndedCalls
    deadlines: CallDeadlines = CallDeadlines()

    async def approve(
        self, approval_id: str, operator: OperatorCaller, asked: SignedRequest = APPROVE_ONLY
    ) -> Approved | ApprovalGiven:  # fmt: skip
        """Execute the stored plan, or store one approval of several; learn what the operator wishes once a call went
        well.

        Raises approval_not_found to operators who lose, plan_integrity when the world has moved on since the hold,
        allowlist_sync_failed when the egress proxy could not be told, and whatever Execution raises; before anything
        is claimed, whatever Wish.of, Learning.check and Signatures.check raise, and policy_engine_unavailable.
        """
        async with AsyncExitStack() as passage:
            with self._at_work(approval_id):
                await self.rights.end()
                approval = await self._pending(approval_id)
                wish = self._wish(approval, asked)
                await self.signatures.check(asked, approval, operator)
                record = self._opened(approval)
                _check_owner(approval, operator)
                await self.policy.require_life()
                try:
                    body = self._recheck(approval)
                    await self.modules.obtain(body.plan)
                except GateError as error:
                    if error.code != "plan_integrity":  # it passes, and must not cost what a person has decided
                        raise
                    approval = await self.transitions.claim(approval, operator, None, asked.signature)
                    raise await self._failed(record, approval, error) from None
                # A dependency that is down for a while must not use up the decision of a person.
                await self.execution.check(body.plan)
                given = await self.quorums.give(record, approval, body, operator, wish, asked.signature)
                if given is not None:
                    return given
                granted = _evidence(
                    record, APPROVAL_GRANTED, "allow", approval, operator, reason=str(wish) or None,
                    approval_signature=asked.signature,
                )  # fmt: skip
                await self.rights.end()  # those that were lost during the checks, which wait for token services
                asked_at = time.monotonic()
                approval = await self.transitions.claim(approval, operator, granted, asked.signature)
                if record.trace is not None:
                    record.trace.wrote(NOTARY_CLAIM, asked_at)
                try:
                    await self._let_through(body.plan, passage)
                    approver = Approver(approval_id, operator.name, operator.jkt, operator.proof_jti)
                    executed = await self.execution.run(
                        record, body.sealed, has_budget=body.has_budget, approver=approver
                    )  # fmt: skip
                except Exception as error:
                    raise await self._failed(record, approval, error) from None
                self.transitions.metrics.approvals.add(APPROVED)
            if executed.succeeded:
                record.say("allow")
                self.ended.end(record, "allow", None, executed, approval_id)
                learned = await self.learning.learn(wish, executed, operator, approval_id)
                return Approved(executed, approval_id, operator, body.plan_hash, learned)
            record.say("error", executed.code, executed.closed.outcome)
            self.ended.end(record, "error", executed.code, executed, approval_id)
            return Approved(executed, approval_id, operator, body.plan_hash)

    async def deny(self, approval_id: str, operator: OperatorCaller, asked: SignedRequest) -> Denied:
        """End the hold without executing; the call goes back to the session's budget.

        Raises approval_not_found to operators who lose; before anything is claimed, whatever Signatures.check raises.
        """
        reason = None if asked.reason is None else clean_reason(asked.reason)
        with self._at_work(approval_id):
            approval = await self._pending(approval_id)
            await self.signatures.check(asked, approval, operator)
            approval = await self.transitions.claim(approval, operator, None, asked.signature)
            record = self._opened(approval)
            denied = _evidence(
                record, APPROVAL_DENIED, "deny", approval, operator, deny_reason=reason,
                approval_signature=asked.signature,
            )  # fmt: skip
            if not await self.transitions.end(
                approval, DENIED, event=denied, refunds=_has_budget(approval), kept=record.kept, deny_reason=reason
            ):  # fmt: skip
                raise GateError("approval_not_found")
        record.say("deny", "approval_denied")
        self.ended.end(record, "deny", "approval_denied", None, approval_id)
        return Denied(
            trace_id=record.trace_id,
            action_id=approval.action_id,
            approval_id=approval_id,
            denied_by=operator.name,
            deny_reason=reason,
        )

    async def _pending(self, approval_id: str) -> ApprovalRecord:
        """The hold, while it waits. Raises GateError."""
        with notary_errors_as("approval_store_unavailable"):
            approval = await self.notary.ask(GetHold(approval_id))
        if approval is None or state_at(approval.state, approval.expires_at, self.transitions.clock.now()) != PENDING:
            raise GateError("approval_not_found")
        return approval

    def _wish(self, approval: ApprovalRecord, asked: SignedRequest) -> Wish:
        """The rules to learn. Raises GateError for one that can't be learned, while the hold still waits."""
        if asked.learn_domain is None and asked.learn_path is None:
            return NO_WISH
        body = readable_body(approval)
        files = None if body is None else body.plan.files
        wish = Wish.of(asked.learn_domain, asked.learn_path, None if files is None else files.root)
        if body is not None:  # without a body no plan runs, and the end of the hold says so
            self.learning.check(wish, body.plan)
        return wish

    @contextmanager
    def _at_work(self, approval_id: str) -> Iterator[None]:
        self.transitions.at_work.append(approval_id)
        try:
            yield
        finally:
            self.transitions.at_work.remove(approval_id)

    def _opened(self, approval: ApprovalRecord) -> CallRecord:
        record = call_record_of(approval, self.weakened)
        trace_id.set(record.trace_id)
        self.ended.begin(record, None)
        return record

    def _recheck(self, approval: ApprovalRecord) -> HeldBody:
        body = body_of(approval)
        if not body.is_intact:
            raise GateError("plan_integrity", cause="the stored plan does not hash to its stored hash")
        # SECURITY: another process may listen at an address that was given up.
        settings = self.settings()
        if body.plan.egress.proxy_url not in (None, settings.egress_proxy_url):
            raise GateError("plan_integrity", cause="the plan's egress proxy is not the configured one any more")
        if not are_in_force(body.plan, settings.egress.networks):
            raise GateError("plan_integrity", cause="the plan's private networks are not the configured ones any more")
        epoch = self.known.epoch
        if epoch != body.plan.epoch:  # as for leases: a store that lost its epoch must not bring revoked holds back
            raise GateError("plan_integrity", cause=f"epoch {body.plan.epoch} of the plan, {epoch} is in force")
        return body

    async def _let_through(self, plan: Plan, passage: AsyncExitStack) -> None:
        """With live sync the egress proxy's list has what was approved, until `passage` ends: by then it is learned, or
        no more than one call was to go there."""
        if plan.egress.proxy_patience_seconds:
            wider = self.allow_list.wider(plan.unresolved_domains, settle_seconds=self.deadlines.settle_seconds)
            with errors_as("allowlist_sync_failed", ListNotWritten):
                await passage.enter_async_context(wider)

    async def _failed(self, record: CallRecord, approval: ApprovalRecord, problem: Exception) -> GateError:
        """End the approval, and return the answer. A dispatched call without evidence stays claimed: recovery ends it
        in its next round, by the ledger."""
        if isinstance(problem, GateError):
            error = problem
        else:
            log.error("an approval failed by a gateway fault", approval_id=approval.approval_id, exc_info=problem)
            error = GateError("internal_error")
        decision = "error" if error.status >= 500 else "deny"
        if record.is_abandoned:
            self.transitions.metrics.approvals.add(FAILED)
        elif not record.is_dispatched:
            event = None
            if not record.is_decided:
                more = {"error_code": error.code, "reason": error.cause, **fields_of(error.failure)}
                event = record.event(
                    decision, approval_id=approval.approval_id, session_id=approval.session_id, **bounded(more)
                )  # fmt: skip
            try:
                await self.transitions.end(
                    approval, FAILED, event=event, refunds=_has_budget(approval), kept=record.kept,
                    error_code=error.code,
                )  # fmt: skip
            except GateError as more_problems:
                log.error("a failed approval left no event", trace_id=record.trace_id, cause=more_problems.cause)
        record.say(decision, error.code, error.cause)
        self.ended.end(record, decision, error.code, None, approval.approval_id)
        error.is_told = True
        return error


def _check_owner(approval: ApprovalRecord, operator: OperatorCaller) -> None:
    """Raises GateError own_request for an operator who would approve a call of their own."""
    body = readable_body(approval)
    if body is not None and operator.owner is not None and operator.owner == body.plan.owner:
        log.warning("an operator may not approve a call of their own", operator=operator.name)
        message = (
            f"the call is of {operator.owner}, the owner of operator {operator.name}: another operator must approve"
        )
        raise GateError("own_request", message=message)


def _has_budget(approval: ApprovalRecord) -> bool:
    body = readable_body(approval)
    return body is not None and body.has_budget


def _evidence(
    record: CallRecord, kind: str, decision: str, approval: ApprovalRecord, operator: OperatorCaller, **more: Any
) -> AuditEvent:
    return record.event(
        decision, event_type=kind, approval_id=approval.approval_id, session_id=approval.session_id,
        approved_by=operator.name, operator_sender_binding=operator.jkt, operator_proof_jti=operator.proof_jti,
        **bounded(more),
    )  # fmt: skip
