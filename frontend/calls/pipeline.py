"""The way of a call, from headers to an answer with evidence: a straight line of steps.

admit -> authenticate -> resolve -> validate -> decide -> debit -> (hold | execute). Each step returns or raises
GateError; every outcome past admission leaves exactly one audit event for the decision before it is answered, and a
debit that nothing was dispatched for is given back, whatever went wrong, the end of this process included.
Never runs a provider (frontend/calls/execution.py) and never judges by itself (the policy engine decides).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import trio

from frontend.actions.planning import Draft, build_plan, draft
from frontend.actions.registry import Action, Registry
from frontend.actions.targets import Learned
from frontend.auth.authentication import Authentication, Caller
from frontend.calls.approvals.hold import Holds
from frontend.calls.budgets import Budgets
from frontend.calls.execution import CLEAN_UP_SECONDS, Executed, Execution
from frontend.calls.journal import Journal
from frontend.calls.record import CallRecord
from frontend.clock import Clock
from frontend.contract.execution import PendingApproval
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.admission import Admission, Place
from frontend.limits.rates import SessionRates, TooMuch
from frontend.policy.engine import PolicyEngine
from frontend.policy.question import Decision, Question
from frontend.schemas.large_bodies import LargeBodies
from frontend.schemas.parser import parse_body
from frontend.stores.interface import ApprovalRecord
from frontend.telemetry.logs import log, trace_id
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.weakened import Weakened
from ipc.settings import Settings

TRUST_CODES = {"mismatch": "action_digest_mismatch", "not_registered": "action_not_registered"}
MAX_BODY_BYTES = 1_048_576
"""Interface specification, "Limits"."""


@dataclass(frozen=True, slots=True)
class Held:
    """A call that waits for a person (202)."""

    approval: ApprovalRecord
    trace_id: str

    def body(self) -> PendingApproval:
        """What the caller hears."""
        approval = self.approval
        return PendingApproval(
            approval_id=approval.approval_id, request_hash=approval.request_hash, trace_id=self.trace_id
        )


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Takes one call after another; holds no state of its own."""

    settings: Settings
    clock: Clock
    weakened: Weakened
    admission: Admission
    authentication: Authentication
    registry: Callable[[], Registry]
    policy: PolicyEngine
    budgets: Budgets
    holds: Holds
    execution: Execution
    journal: Journal
    learned: Callable[[str], Learned]
    sessions: SessionRates
    metrics: Metrics
    large_bodies: LargeBodies = field(default_factory=LargeBodies)

    async def call(self, request: Request, action_id: str) -> Executed | Held:
        """Enforce one call. Raises GateError for every other outcome, with its evidence durable."""
        with self.admission.enter() as place:
            record = CallRecord(action_id, self.weakened)
            trace_id.set(record.trace_id)
            try:
                outcome = await self._enforce(record, request, place)
            except TooMuch as error:
                await self._refused_again(record, error)
                raise
            except GateError as error:
                place.leave_unless_owned()
                await self._refused(record, error)
                raise
            except trio.Cancelled:
                await self._cut(record)
                raise
            except Exception:
                log.exception("a call failed by a fault of ours", action_id=record.action_id)
                fault = GateError("internal_error")
                await self._refused(record, fault)
                raise fault from None
            self._succeeded(record, outcome)
            return outcome

    async def _enforce(self, record: CallRecord, request: Request, place: Place) -> Executed | Held:
        claim = self.authentication.claim(request)
        record.lease, record.identity_method = claim.lease, claim.lease.identity_method
        proof = self.authentication.check(request, claim)
        place.belongs_to(claim.lease.principal, claim.lease.session_id)
        caller = await self.authentication.admit(claim, proof)
        action = self._resolve(record)
        sent = await request.read_body(min(MAX_BODY_BYTES, action.max_request_bytes))
        body = await self.large_bodies.run(len(sent), partial(parse_body, sent))
        record.calls_before = await self.budgets.snapshot(caller.lease)
        learned = self.learned(action.action_id)
        drafted = await self.large_bodies.run(
            len(sent),
            partial(
                draft, action, body, caller.lease, record.calls_before, caller.epoch, learned, settings=self.settings
            ),
        )
        record.request_hash = drafted.request_hash
        if record.calls_before is not None and record.calls_before < 1:
            return await self._exhausted(record, drafted)
        decision = await self._decide(record, drafted)
        if decision.requires_approval and (approval := await self.holds.repeated(record, drafted)):
            return Held(approval, record.trace_id)
        record.calls_after = await self.budgets.debit(caller.lease)
        try:
            return await self._dispatch(record, caller, drafted, decision)
        finally:
            if not record.is_spent:
                await self._give_back(record, caller)

    def _resolve(self, record: CallRecord) -> Action:
        action = self.registry().get(record.action_id)
        if action is None:
            raise GateError("action_not_found")
        record.action = action
        if action.trust_verdict != "digest_ok":
            raise GateError(TRUST_CODES[action.trust_verdict])
        return action

    async def _exhausted(self, record: CallRecord, drafted: Draft) -> Held:
        """No call is left, so policy is not asked; what was held with the last one is still answered with its hold."""
        approval = await self.holds.repeated(record, drafted)
        if approval is None:
            raise GateError("budget_exhausted")
        return Held(approval, record.trace_id)

    async def _decide(self, record: CallRecord, drafted: Draft) -> Decision:
        decision = record.decision = await self.policy.decide(_question(drafted))
        if not decision.allow:
            raise GateError("policy_denied", deny_reason=decision.deny_reason or "denied by policy")
        if not set(drafted.sinks) <= set(decision.allowed_sinks):
            raise GateError("policy_denied", deny_reason="policy does not allow every sink of this action")
        return decision

    async def _dispatch(
        self, record: CallRecord, caller: Caller, drafted: Draft, decision: Decision
    ) -> Executed | Held:
        plan = record.plan = build_plan(
            drafted,
            record.trace_id,
            decision.policy_version,
            decision.rule,
            self.clock.iso(),
            is_held=decision.requires_approval,
        )
        if not decision.requires_approval:
            return await self.execution.run(record, plan)
        return Held(await self.holds.hold(record, plan, caller.lease.has_budget), record.trace_id)

    async def _give_back(self, record: CallRecord, caller: Caller) -> None:
        if not caller.lease.has_budget:
            return
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
            if await self.budgets.give_back(record, caller.lease.session_id):
                record.calls_after = record.calls_before

    async def _refused(self, record: CallRecord, error: GateError) -> None:
        """The one audit event of a refused call. A denial without evidence raises what prevents it instead."""
        decision = "error" if error.status >= 500 else "deny"
        found = {
            "error_code": error.code,
            "deny_reason": error.extra.get("deny_reason"),
            "reason": error.cause or error.extra.get("reason"),
        }
        try:
            if not record.is_decided:
                await self.journal.decided(record, decision, **found)
        except GateError as problem:
            log.error("a refusal left no event", code=error.code, action_id=record.action_id, cause=problem.cause)
            if error.status < 500:
                self._end(record, "error", problem.code)
                raise
        self._end(record, decision, error.code, error.cause)

    async def _refused_again(self, record: CallRecord, error: TooMuch) -> None:
        """More than a session may have now. One event tells of many such refusals: a flood never fills the ledger."""
        if record.lease is None:
            return
        if error.code == "rate_limit_exceeded":
            self.metrics.calls_refused.add("rate")
        count = self.sessions.refused(record.lease.session_id)
        if count is not None:
            told = GateError(error.code, cause=f"calls of this session refused since the last such event: {count}")
            await self._refused(record, told)

    async def _cut(self, record: CallRecord) -> None:
        """This process leaves, and nobody hears the answer: the evidence says so, unless execution has said more."""
        if record.is_spent:
            return
        error = GateError("draining", cause="the gateway stopped before the call was dispatched")
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
            await self._refused(record, error)

    def _succeeded(self, record: CallRecord, outcome: Executed | Held) -> None:
        if isinstance(outcome, Held):
            self._end(record, "pending_approval")
        elif outcome.succeeded:
            self._end(record, "allow")
        else:
            self._end(record, "error", "action_execution_failed", outcome.conclusion.detail["outcome"])

    def _end(self, record: CallRecord, decision: str, code: str | None = None, cause: str | None = None) -> None:
        record.say(decision, code, cause)
        self.metrics.called(record.action_id, decision, code, record.started)


def _question(drafted: Draft) -> Question:
    """What policy is asked of a draft (docs/policy.md, input document)."""
    action = drafted.action
    return Question(
        principal=drafted.principal,
        owner=drafted.owner,
        action_id=action.action_id,
        action_version=action.version,
        action_risk_level=action.risk_level,
        action_trust_verdict=action.trust_verdict,
        scopes=drafted.scopes,
        required_scopes=action.required_scopes,
        requested_sinks=drafted.sinks,
        requested_secrets=action.secret_names,
        egress_profile=action.egress_profile,
        targets=drafted.targets,
        unresolved_domains=drafted.unresolved_domains,
        unresolved_paths=drafted.unresolved_paths,
        fs_path=drafted.fs_path,
        calls_remaining=drafted.calls_remaining,
        request_hash=drafted.request_hash,
    )
