"""The way of a call, from headers to an answer with evidence: a straight line of steps.

admit -> authenticate -> resolve -> validate -> decide -> (hold | execute). Each step returns or raises GateError;
every outcome past admission leaves exactly one audit event for the decision before it is answered. Proof and budget are
used by the same operation of the notary that makes the outcome durable: the one that opens, holds or refuses.
Never runs a provider (frontend/calls/execution.py) and never judges by itself (the policy engine decides).
"""

import contextlib
import contextvars
import time
from functools import partial

import msgspec
import trio
from msgspec.structs import replace

from contract.failures import fields_of
from frontend.actions.planning import Draft, build_plan
from frontend.auth.authentication import Authentication
from frontend.auth.lease import Lease
from frontend.calls.approvals.hold import HoldWriter
from frontend.calls.audit_writer import bounded
from frontend.calls.awaiting import awaited
from frontend.calls.caps import MustBeHeld, held_by_cap
from frontend.calls.deciding import Deciding
from frontend.calls.ended_calls import EndedCalls
from frontend.calls.executed import CallOutcome, ExecutedCall
from frontend.calls.execution import Execution
from frontend.calls.idempotency import call_key, outcome_of
from frontend.calls.quotas import Quotas
from frontend.calls.record import CallRecord
from frontend.calls.refusals import Refusals, RefusedRequest
from frontend.calls.standing import lifted, may_be_lifted
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.limits.admission import Admission, Place
from frontend.limits.rates import SessionRates, TooMuch
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.policy.question import Decision
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.weakened import Weakened
from ipc.backends.store import STORE_PARTS, ApprovalRecord
from ipc.evidence.events import ACTION_CALL
from ipc.messages.exporting import NOTARY_REFUSE
from ipc.operations.calls import Refuse, RepeatedCall, WrittenRefusal
from ipc.operations.standing import Lifted, StandingUse
from ipc.plan import SealedPlan, seal

UNCHECKED_EVENTS = 10
"""Events of calls whose proof the store can't check, of one user and code, before they are counted."""


class Pipeline(msgspec.Struct, frozen=True):
    """Takes one call after another; holds no state of its own."""

    clock: TimeSource
    weakened: Weakened
    admission: Admission
    authentication: Authentication
    deciding: Deciding
    holds: HoldWriter
    execution: Execution
    notary: NotaryClient
    sessions: SessionRates
    metrics: Metrics
    refusals: Refusals
    quotas: Quotas
    ended: EndedCalls

    async def call(self, request: Request, action_id: str) -> CallOutcome:
        """Enforce one call. Raises GateError for every other outcome, with its evidence durable."""
        with self.admission.enter() as place:
            is_registered = self.deciding.registry().get(action_id) is not None
            record = CallRecord(action_id, self.weakened, uid=request.uid, is_registered=is_registered)
            self.ended.begin(record, request)
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

    async def _enforce(self, record: CallRecord, request: Request, place: Place) -> CallOutcome:
        claim = self.authentication.claim(request)
        lease = record.lease = claim.lease
        record.proof = self.authentication.check(request, claim)
        record.proof_key, record.has_proven = record.proof.key, True
        place.belongs_to(lease.principal, lease.session_id)
        record.calls_per_hour = self.quotas.of(lease.principal).max_calls_per_hour
        epoch = self.authentication.in_force(lease)
        action = self.deciding.resolve(record)
        key = call_key(request, action)
        most = action.max_request_bytes
        place.holds_body(most if request.body_length is None else min(most, request.body_length))
        sent = await request.read_body(most)
        place.has_body(len(sent))
        drafted = await self.deciding.drafted(record, sent, action, lease, epoch, place.owners)
        decision = await self.deciding.decide(record, lease, drafted)
        record.key = key
        if record.calls_before is not None and record.calls_before < 1:
            # A call that was held with the last of the budget is still answered with its hold.
            record.unless_held = True
            raise GateError("budget_exhausted")
        if not decision.requires_approval:
            try:
                return await self._executed(record, drafted, decision, lease)
            except MustBeHeld:
                again = await self.deciding.decide_again(record, lease, drafted)
                decision = record.decision = held_by_cap(again)
        return await self._held(record, drafted, decision, lease)

    async def _executed(
        self, record: CallRecord, drafted: Draft, decision: Decision, lease: Lease
    ) -> ExecutedCall:  # fmt: skip
        """Run the call. Raises MustBeHeld if the notary says so."""
        sealed = self._sealed(record, drafted, decision)
        executed = await self.execution.run(record, sealed, has_budget=lease.has_budget)
        exposes = drafted.action.manifest.expose_provider_error
        return replace(executed, exposes_error=True) if exposes else executed

    async def _held(self, record: CallRecord, drafted: Draft, decision: Decision, lease: Lease) -> CallOutcome:
        """Hold the call, or run it by a standing approval that covers it. The call is held if that is over by
        then."""
        sealed = self._sealed(record, drafted, decision)
        quorum = self.deciding.quorum(decision, sealed.plan)
        description = drafted.action.manifest.description
        hold = partial(self.holds.hold, record, sealed, lease.has_budget, description, quorum)
        held = await hold(may_be_lifted=may_be_lifted(drafted, quorum))
        if isinstance(held, Lifted):
            record.standing = StandingUse(held.standing_id, drafted.policy_input)
            try:
                return await self._executed(record, drafted, lifted(decision), lease)
            except MustBeHeld:
                record.standing = None
                await self.deciding.decide_again(record, lease, drafted)
                record.decision, record.plan = decision, sealed.plan
                held = await hold()
        assert isinstance(held, ApprovalRecord), "asked without may_be_lifted"
        return awaited(record, held)

    def _sealed(self, record: CallRecord, drafted: Draft, decision: Decision) -> SealedPlan:
        plan = record.plan = build_plan(
            drafted, record.trace_id, decision.policy_version, decision.rule, record.calls_before, self.clock.iso(),
            is_held=decision.requires_approval,
        )  # fmt: skip
        return seal(plan)

    async def _refused(self, record: CallRecord, error: GateError) -> CallOutcome:
        """Leave the one event of a refused call, and raise what is answered. A denial without evidence raises what
        prevents it instead, a proof that was used before replay_detected.

        Returns the hold that the call has already, where it has one, and the outcome of an earlier call of its key.
        """
        if record.repeated is not None:
            return await self._repeated(record, record.repeated)
        if error.code == "budget_exhausted" and record.lease is not None and "reason" not in error.extra:
            self.deciding.budgets.note_spent(record.lease.session_id)  # a quota has its reason, and ends by itself
        if record.held is not None:
            return awaited(record, record.held)
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
                if answer.repeated is not None:
                    return await self._repeated(record, answer.repeated)
                if answer.held is not None:
                    return awaited(record, answer.held)
                if answer.is_replay:
                    error, decision = GateError("replay_detected"), "deny"
        if error.code == "replay_detected" and record.lease is not None and record.proof_key is not None:
            self.authentication.not_its_own(record.lease, record.proof_key)
        self._end(record, decision, error.code, error.cause)
        error.is_told = True
        raise error

    async def _repeated(self, record: CallRecord, repeated: RepeatedCall) -> CallOutcome:
        """The outcome of the earlier call of the same key; its event is written."""
        try:
            return await outcome_of(self.notary, record, repeated)
        except GateError as error:
            self._end(record, "error" if error.status >= 500 else "deny", error.code, error.cause)
            error.is_told = True
            raise

    async def _told(self, record: CallRecord, decision: str, error: GateError) -> WrittenRefusal:
        """Write the event, and use the proof. Raises GateError for what prevents it."""
        more = {
            "error_code": error.code,
            "deny_reason": error.extra.get("deny_reason"),
            "reason": error.cause or error.extra.get("reason"),
            **fields_of(error.failure),
        }
        event = record.event(decision, **bounded(more))
        unavailable = "evidence_persistence_failed" if record.proof is None else "replay_cache_unavailable"
        asked_at = time.monotonic()
        try:
            with trio.CancelScope(shield=True):  # a refusal is written even if its task is cancelled now
                key = None if record.proof is None else record.key  # without a proof it is this call that has the key
                refusal = Refuse(event, record.proof, record.unless_held, record.kept, key, record.unanswered)
                answer = await self.notary.ask(refusal)
        except (NotaryUnavailable, NotaryRefused) as problem:
            told = GateError(unavailable, cause=str(problem))
            if isinstance(problem, NotaryUnavailable) and problem.part in STORE_PARTS:
                await self._refused_unchecked(record, error if error.status >= 500 else told)
            raise told from None
        if record.trace is not None:
            record.trace.wrote(NOTARY_REFUSE, asked_at)
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

    def _tell_outcome(self, request: Request, record: CallRecord, outcome: CallOutcome) -> None:
        """Count the call and say its line. The evidence is durable by now: the answer need not wait for the line."""
        if isinstance(outcome, ExecutedCall) and not outcome.succeeded:
            self._end(record, "error", outcome.code, outcome.closed.outcome, outcome)
            return
        decision = "allow" if isinstance(outcome, ExecutedCall) else "pending_approval"
        self.metrics.called(record.action_id, decision, None, record.started)
        self.ended.end(record, decision, None, outcome)
        request.after_answer(partial(record.say, decision))

    def _end(
        self, record: CallRecord, decision: str, code: str | None = None, cause: str | None = None,
        outcome: CallOutcome | None = None,
    ) -> None:  # fmt: skip
        if decision != "deny" or code is None or self.refusals.lines.may_say(record.uid, code):
            record.say(decision, code, cause)
        self.metrics.called(record.action_id, decision, code, record.started)
        self.ended.end(record, decision, code, outcome)
