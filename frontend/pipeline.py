"""The way of a call, from headers to an answer with evidence: a straight line of steps.

admit -> authenticate -> resolve -> validate -> decide -> debit -> (hold | execute). Each step returns or raises
GateError; every outcome past admission leaves exactly one audit event for the decision before it is answered, and a
debit that nothing was dispatched for is given back, whatever went wrong, the end of this process included.
Never runs a provider (frontend/execution.py) and never judges by itself (the policy engine decides).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import trio

from frontend.actions.planning import Draft, build_plan, draft
from frontend.actions.registry import Action, Registry
from frontend.actions.schema import parse_body
from frontend.actions.targets import Learned
from frontend.admission import Admission, Place
from frontend.approvals.hold import Holds
from frontend.authentication import Authentication, Caller
from frontend.budgets import Budgets
from frontend.case import Case
from frontend.clock import Clock
from frontend.contract.execution import PendingApproval
from frontend.errors import GateError
from frontend.execution import CLEAN_UP_SECONDS, Executed, Execution
from frontend.http.requests import Request
from frontend.journal import Journal
from frontend.large_bodies import LargeBodies
from frontend.limits import SessionRates, TooMuch
from frontend.policy.engine import PolicyEngine
from frontend.policy.question import Decision, Question
from frontend.stores.interface import ApprovalRecord
from frontend.telemetry.logs import log, trace_id
from frontend.telemetry.marks import Marks
from frontend.telemetry.metrics import Metrics
from ipc.settings import Settings

TRUST_CODES = {"mismatch": "action_digest_mismatch", "not_registered": "action_not_registered"}
MAX_BODY_BYTES = 1_048_576
"""Interface specification, "Limits"."""


@dataclass(frozen=True, slots=True)
class Held:
    """A call that waits for a person (202)."""

    record: ApprovalRecord
    trace_id: str

    def body(self) -> PendingApproval:
        """What the caller hears."""
        record = self.record
        return PendingApproval(approval_id=record.approval_id, request_hash=record.request_hash, trace_id=self.trace_id)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Takes one call after another; holds no state of its own."""

    settings: Settings
    clock: Clock
    marks: Marks
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
            case = Case(action_id, self.marks)
            trace_id.set(case.trace_id)
            try:
                outcome = await self._enforce(case, request, place)
            except TooMuch as error:
                await self._refused_again(case, error)
                raise
            except GateError as error:
                place.leave_unless_owned()
                await self._refused(case, error)
                raise
            except trio.Cancelled:
                await self._cut(case)
                raise
            except Exception:
                log.exception("a call failed by a fault of ours", action_id=case.action_id)
                fault = GateError("internal_error")
                await self._refused(case, fault)
                raise fault from None
            self._succeeded(case, outcome)
            return outcome

    async def _enforce(self, case: Case, request: Request, place: Place) -> Executed | Held:
        claim = self.authentication.claim(request)
        case.lease, case.identity_method = claim.lease, claim.lease.identity_method
        proof = self.authentication.check(request, claim)
        place.belongs_to(claim.lease.principal, claim.lease.session_id)
        caller = await self.authentication.admit(claim, proof)
        action = self._resolve(case)
        sent = await request.read_body(min(MAX_BODY_BYTES, action.max_request_bytes))
        body = await self.large_bodies.run(len(sent), partial(parse_body, sent))
        case.calls_before = await self.budgets.snapshot(caller.lease)
        learned = self.learned(action.action_id)
        drafted = await self.large_bodies.run(
            len(sent),
            partial(
                draft, action, body, caller.lease, case.calls_before, caller.epoch, learned, settings=self.settings
            ),
        )
        case.request_hash = drafted.request_hash
        if case.calls_before is not None and case.calls_before < 1:
            return await self._exhausted(case, drafted)
        decision = await self._decide(case, drafted)
        if decision.requires_approval and (record := await self.holds.repeated(case, drafted)):
            return Held(record, case.trace_id)
        case.calls_after = await self.budgets.debit(caller.lease)
        try:
            return await self._dispatch(case, caller, drafted, decision)
        finally:
            if not case.is_spent:
                await self._give_back(case, caller)

    def _resolve(self, case: Case) -> Action:
        action = self.registry().get(case.action_id)
        if action is None:
            raise GateError("action_not_found")
        case.action = action
        if action.trust_verdict != "digest_ok":
            raise GateError(TRUST_CODES[action.trust_verdict])
        return action

    async def _exhausted(self, case: Case, drafted: Draft) -> Held:
        """No call is left, so policy is not asked; what was held with the last one is still answered with its hold."""
        record = await self.holds.repeated(case, drafted)
        if record is None:
            raise GateError("budget_exhausted")
        return Held(record, case.trace_id)

    async def _decide(self, case: Case, drafted: Draft) -> Decision:
        decision = case.decision = await self.policy.decide(_question(drafted))
        if not decision.allow:
            raise GateError("policy_denied", deny_reason=decision.deny_reason or "denied by policy")
        if not set(drafted.sinks) <= set(decision.allowed_sinks):
            raise GateError("policy_denied", deny_reason="policy does not allow every sink of this action")
        return decision

    async def _dispatch(self, case: Case, caller: Caller, drafted: Draft, decision: Decision) -> Executed | Held:
        plan = case.plan = build_plan(
            drafted,
            case.trace_id,
            decision.policy_version,
            decision.rule,
            self.clock.iso(),
            is_held=decision.requires_approval,
        )
        if not decision.requires_approval:
            return await self.execution.run(case, plan)
        return Held(await self.holds.hold(case, plan, caller.lease.has_budget), case.trace_id)

    async def _give_back(self, case: Case, caller: Caller) -> None:
        if not caller.lease.has_budget:
            return
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
            if await self.budgets.give_back(case, caller.lease.session_id):
                case.calls_after = case.calls_before

    async def _refused(self, case: Case, error: GateError) -> None:
        """The one audit event of a refused call. A denial without evidence raises what prevents it instead."""
        decision = "error" if error.status >= 500 else "deny"
        found = {
            "error_code": error.code,
            "deny_reason": error.extra.get("deny_reason"),
            "reason": error.cause or error.extra.get("reason"),
        }
        try:
            if not case.is_decided:
                await self.journal.decided(case, decision, **found)
        except GateError as problem:
            log.error("a refusal left no event", code=error.code, action_id=case.action_id, cause=problem.cause)
            if error.status < 500:
                self._end(case, "error", problem.code)
                raise
        self._end(case, decision, error.code, error.cause)

    async def _refused_again(self, case: Case, error: TooMuch) -> None:
        """More than a session may have now. One event tells of many such refusals: a flood never fills the ledger."""
        if case.lease is None:
            return
        if error.code == "rate_limit_exceeded":
            self.metrics.calls_refused.add("rate")
        count = self.sessions.refused(case.lease.session_id)
        if count is not None:
            told = GateError(error.code, cause=f"calls of this session refused since the last such event: {count}")
            await self._refused(case, told)

    async def _cut(self, case: Case) -> None:
        """This process leaves, and nobody hears the answer: the evidence says so, unless execution has said more."""
        if case.is_spent:
            return
        error = GateError("draining", cause="the gateway stopped before the call was dispatched")
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
            await self._refused(case, error)

    def _succeeded(self, case: Case, outcome: Executed | Held) -> None:
        if isinstance(outcome, Held):
            self._end(case, "pending_approval")
        elif outcome.succeeded:
            self._end(case, "allow")
        else:
            self._end(case, "error", "action_execution_failed", outcome.conclusion.detail["outcome"])

    def _end(self, case: Case, decision: str, code: str | None = None, cause: str | None = None) -> None:
        case.say(decision, code, cause)
        self.metrics.called(case.action_id, decision, code, case.started)


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
