"""The way of a call, from headers to an answer with evidence: a straight line of steps.

admit -> authenticate -> resolve -> validate -> decide -> (hold | execute). Each step returns or raises GateError;
every outcome past admission leaves exactly one audit event for the decision before it is answered. Proof and budget are
used by the same operation of the notary that makes the outcome durable: the one that opens, holds or refuses.
Never runs a provider (frontend/calls/execution.py) and never judges by itself (the policy engine decides).
"""

import contextlib
import contextvars
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import trio
from msgspec import UNSET

from contract.execution import PendingApproval
from frontend.actions.planning import Draft, build_plan, draft
from frontend.actions.question import question_of
from frontend.actions.registry import Action, Registry
from frontend.actions.targets import NOTHING_LEARNED, Learned
from frontend.auth.authentication import Authentication
from frontend.auth.lease import Lease
from frontend.calls.approvals.hold import HoldWriter
from frontend.calls.audit_writer import bounded
from frontend.calls.budgets import BudgetCheck
from frontend.calls.executed import ExecutedCall
from frontend.calls.execution import Execution
from frontend.calls.quotas import Quotas
from frontend.calls.record import CallRecord
from frontend.calls.refusals import Refusals, RefusedRequest
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.admission import Admission, Place
from frontend.limits.rates import SessionRates, TooMuch
from frontend.limits.turns import Owners
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.policy.engine import PolicyEngine
from frontend.policy.question import BudgetUnread, Decision
from frontend.schemas.large_bodies import LargeBodies, cost_of
from frontend.schemas.parser import parse_body
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.weakened import Weakened
from ipc.backends.store import STORE_PARTS, ApprovalRecord
from ipc.events import ACTION_CALL
from ipc.operations.calls import Refuse, WrittenRefusal
from ipc.plan import seal
from ipc.settings import Settings

UNCHECKED_EVENTS = 10
"""Events of calls whose proof the store can't check, of one user and code, before they are counted."""
TRUST_CODES = {"mismatch": "action_digest_mismatch", "not_registered": "action_not_registered"}


@dataclass(frozen=True, slots=True)
class AwaitedApproval:
    """A call that waits for a person (202)."""

    approval: ApprovalRecord
    trace_id: str

    def body(self) -> PendingApproval:
        """The answer."""
        approval = self.approval
        return PendingApproval(
            approval_id=approval.approval_id, request_hash=approval.request_hash, trace_id=self.trace_id
        )


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Takes one call after another; holds no state of its own."""

    settings: Callable[[], Settings]
    clock: TimeSource
    weakened: Weakened
    admission: Admission
    authentication: Authentication
    registry: Callable[[], Registry]
    policy: PolicyEngine
    budgets: BudgetCheck
    holds: HoldWriter
    execution: Execution
    notary: NotaryClient
    learned: Callable[[str], Learned]
    sessions: SessionRates
    metrics: Metrics
    use_newest_policy: Callable[[], Awaitable[None]]
    refusals: Refusals
    quotas: Quotas
    large_bodies: LargeBodies = field(default_factory=LargeBodies)

    async def call(self, request: Request, action_id: str) -> ExecutedCall | AwaitedApproval:
        """Enforce one call. Raises GateError for every other outcome, with its evidence durable."""
        with self.admission.enter() as place:
            is_registered = self.registry().get(action_id) is not None
            record = CallRecord(action_id, self.weakened, uid=request.uid, is_registered=is_registered)
            try:
                outcome = await self._enforce(record, request, place)
            except TooMuch as error:
                await self._refused_again(record, error)
                raise
            except GateError as error:
                place.leave_unless_owned()
                if error.status == 401 and not record.has_proven:
                    await self._refused_unproven(record, error)
                    raise
                outcome = await self._refused(record, error)
            except trio.Cancelled:
                await self._cut(record)
                raise
            except Exception:
                log.exception("a call failed by a gateway fault", action_id=record.action_id)
                outcome = await self._refused(record, GateError("internal_error"))
            self._tell_outcome(request, record, outcome)
            return outcome

    async def _enforce(self, record: CallRecord, request: Request, place: Place) -> ExecutedCall | AwaitedApproval:
        claim = self.authentication.claim(request)
        lease = record.lease = claim.lease
        record.identity_method = lease.identity_method
        record.proof = self.authentication.check(request, claim)
        record.proof_key, record.has_proven = record.proof.key, True
        place.belongs_to(lease.principal, lease.session_id)
        record.calls_per_hour = self.quotas.of(lease.principal).max_calls_per_hour
        epoch = self.authentication.in_force(lease)
        action = self._resolve(record)
        most = action.max_request_bytes
        place.holds_body(most if request.body_length is None else min(most, request.body_length))
        sent = await request.read_body(most)
        place.has_body(len(sent))
        drafted = await self._drafted(sent, action, lease, epoch, place.owners)
        record.request_hash = drafted.plan.request_hash
        decision = await self._decide(record, lease, drafted)
        if record.calls_before is not None and record.calls_before < 1:
            # A call that was held with the last of the budget is still answered with its hold.
            record.unless_held = True
            raise GateError("budget_exhausted")
        plan = record.plan = build_plan(
            drafted, record.trace_id, decision.policy_version, decision.rule, record.calls_before, self.clock.iso(),
            is_held=decision.requires_approval,
        )  # fmt: skip
        sealed = seal(plan)
        if decision.requires_approval:
            description = action.manifest.description
            return AwaitedApproval(
                await self.holds.hold(record, sealed, lease.has_budget, description), record.trace_id
            )
        executed = await self.execution.run(record, sealed, has_budget=lease.has_budget)
        return replace(executed, exposes_error=True) if action.manifest.expose_provider_error else executed

    async def _drafted(self, sent: bytes, action: Action, lease: Lease, epoch: int, owners: Owners) -> Draft:
        """Parse and draft in one turn, so that no parsed body waits: it takes many times the memory of its bytes."""
        learned = self.learned(action.action_id) if action.has_targets else NOTHING_LEARNED

        def work() -> Draft:
            return draft(action, parse_body(sent), lease, epoch, learned, settings=self.settings())

        return await self.large_bodies.run(cost_of(sent), owners, work)

    def _resolve(self, record: CallRecord) -> Action:
        registry = self.registry()
        action = registry.get(record.action_id)
        if action is None:
            close = registry.near(record.action_id)
            more: dict[str, Any] = {"did_you_mean": close} if close else {}
            raise GateError("action_not_found", cause=_unregistered(record.action_id), **more)
        record.action = action
        if action.trust_verdict != "digest_ok":
            raise GateError(TRUST_CODES[action.trust_verdict])
        return action

    async def _decide(self, record: CallRecord, lease: Lease, drafted: Draft) -> Decision:
        """Policy's decision. The budget is read before only if the decision may depend on it, and afterwards for a
        denial, whose event has it. A hold shows it: policy is asked again once it is read."""
        await self.use_newest_policy()
        decision = await self._decided_unread(drafted) if self.budgets.is_unread(lease) else None
        if decision is None or decision.requires_approval:
            record.calls_before = await self.budgets.snapshot(lease)
            # SECURITY: a right that was revoked meanwhile must hold nothing: its holds have been ended by now.
            await self.use_newest_policy()
            decision = await self.policy.decide(question_of(drafted, record.calls_before))
        record.decision = decision
        is_allowed = decision.allow and set(drafted.plan.sinks) <= set(decision.allowed_sinks)
        if record.calls_before is None and not is_allowed:
            record.calls_before = await self.budgets.snapshot(lease)
        if not decision.allow:
            raise GateError("policy_denied", deny_reason=decision.deny_reason, rule=decision.rule)
        if not is_allowed:
            raise GateError("policy_denied", deny_reason="policy does not allow every sink of this action")
        return decision

    async def _decided_unread(self, drafted: Draft) -> Decision | None:
        """The decision without the budget; None if it may depend on that."""
        try:
            return await self.policy.decide(question_of(drafted, UNSET))
        except BudgetUnread:
            return None

    async def _refused(self, record: CallRecord, error: GateError) -> AwaitedApproval:
        """Leave the one event of a refused call, and raise what is answered. A denial without evidence raises what
        prevents it instead, a proof that was used before replay_detected.

        Returns the hold that the call has already, where it has one.
        """
        if error.code == "budget_exhausted" and record.lease is not None and "reason" not in error.extra:
            self.budgets.note_spent(record.lease.session_id)  # a quota has its reason, and ends by itself
        if record.held is not None:
            return AwaitedApproval(record.held, record.trace_id)
        decision = "error" if error.status >= 500 else "deny"
        if not record.is_decided and self.notary.is_silent and error.status >= 500:
            self._tell_later(record, decision, error)
        elif not record.is_decided:
            try:
                answer = await self._told(record, decision, error)
            except GateError as problem:
                if not record.is_decided:
                    log.error(
                        "a refusal left no event", code=error.code, action_id=record.action_id, cause=problem.cause
                    )
                if error.status < 500:
                    self._end(record, "error", problem.code)
                    problem.is_told = True
                    raise
            else:
                if answer.held is not None:
                    return AwaitedApproval(answer.held, record.trace_id)
                if answer.is_replay:
                    error, decision = GateError("replay_detected"), "deny"
        if error.code == "replay_detected" and record.lease is not None and record.proof_key is not None:
            self.authentication.not_its_own(record.lease, record.proof_key)
        self._end(record, decision, error.code, error.cause)
        error.is_told = True
        raise error

    async def _told(self, record: CallRecord, decision: str, error: GateError) -> WrittenRefusal:
        """Write the event, and use the proof. Raises GateError for what prevents it."""
        more = {
            "error_code": error.code,
            "deny_reason": error.extra.get("deny_reason"),
            "reason": error.cause or error.extra.get("reason"),
        }
        event = record.event(decision, **bounded(more))
        unavailable = "evidence_persistence_failed" if record.proof is None else "replay_cache_unavailable"
        try:
            with trio.CancelScope(shield=True):  # a refusal is written even if its task is cancelled now
                answer = await self.notary.ask(Refuse(event, record.proof, record.unless_held))
        except (NotaryUnavailable, NotaryRefused) as problem:
            told = GateError(unavailable, cause=str(problem))
            if isinstance(problem, NotaryUnavailable) and problem.part in STORE_PARTS:
                await self._refused_unchecked(record, error if error.status >= 500 else told)
            raise told from None
        record.proof, record.is_decided = None, True
        return answer

    def _tell_later(self, record: CallRecord, decision: str, error: GateError) -> None:
        """The notary hangs: its caller has waited long enough, and the event follows when the notary answers."""

        async def tell() -> None:
            try:
                await self.execution.finish(record, error)
                if not record.is_decided:
                    await self._told(record, decision, error)
            except GateError as problem:
                cause = problem.cause
                log.error("a refusal left no event", code=error.code, action_id=record.action_id, cause=cause)
            except Exception:
                log.exception("a call failed by a gateway fault", action_id=record.action_id)

        trio.lowlevel.spawn_system_task(tell, name="the event of a call", context=contextvars.copy_context())

    async def _refused_unchecked(self, record: CallRecord, error: GateError) -> None:
        """The key-value store can't tell whether the proof is new. SECURITY: the request may be an old one that was
        recorded and is sent again, so few of these have an event of their own, and the others are counted."""
        fields = bounded(record.facts() | {"reason": error.cause})
        await self.refusals.note(RefusedRequest(ACTION_CALL, record.uid, error, fields, own_events=UNCHECKED_EVENTS))
        record.is_decided = True

    async def _refused_unproven(self, record: CallRecord, error: GateError) -> None:
        """A caller who has proven nothing: the first is in evidence and in the log, those after it are counted."""
        fields = {**record.caller(), "reason": error.cause}
        if await self.refusals.note(RefusedRequest(ACTION_CALL, record.uid, error, fields)):
            record.say("deny", error.code, error.cause)
        self.metrics.called(record.action_id, "deny", error.code, record.started)
        error.is_told = True

    async def _refused_again(self, record: CallRecord, error: TooMuch) -> None:
        """More than a session may have now. One event tells of many such refusals: a flood never fills the ledger."""
        if record.lease is None:
            return
        if error.code == "rate_limit_exceeded":
            self.metrics.calls_refused.add("rate")
        count = self.sessions.refused(record.lease.session_id)
        if count is not None:
            # The proof stays unused: the same request may be sent again when there is room.
            record.proof = None
            told = GateError(error.code, cause=f"calls of this session refused since the last such event: {count}")
            with contextlib.suppress(GateError):
                await self._refused(record, told)

    async def _cut(self, record: CallRecord) -> None:
        """This process stops, and the caller gets no answer: the evidence says so, unless execution has said more."""
        if record.is_decided:
            return
        error = GateError("draining", cause="the gateway stopped before the call was dispatched")
        with contextlib.suppress(GateError):
            await self._refused(record, error)

    def _tell_outcome(self, request: Request, record: CallRecord, outcome: ExecutedCall | AwaitedApproval) -> None:
        """Count the call and say its line. The evidence is durable by now: the answer need not wait for the line."""
        if isinstance(outcome, ExecutedCall) and not outcome.succeeded:
            self._end(record, "error", "action_execution_failed", outcome.closed.outcome)
            return
        decision = "allow" if isinstance(outcome, ExecutedCall) else "pending_approval"
        self.metrics.called(record.action_id, decision, None, record.started)
        request.after_answer(partial(record.say, decision))

    def _end(self, record: CallRecord, decision: str, code: str | None = None, cause: str | None = None) -> None:
        if decision != "deny" or code is None or self.refusals.lines.may_say(record.uid, code):
            record.say(decision, code, cause)
        self.metrics.called(record.action_id, decision, code, record.started)


def _unregistered(action_id: str) -> str:
    """The text in evidence instead of an unknown id: a reader who has the id can compare the digest."""
    digest = hashlib.sha256(action_id.encode()).hexdigest()
    return f"no registered action: an id of {len(action_id)} characters, sha256:{digest}"
