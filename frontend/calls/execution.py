"""The only path that runs a provider, for allowed and for approved calls alike.

secrets -> intent and grant -> worker -> dispatch -> receipt and event -> answer. Guarantees: the intent is durable
before a worker hears of the plan, the receipt and the event before anybody hears the result; a worker that dies leaves
a receipt, and so does a call that the end of this process cuts; an intent of which nothing was dispatched is resolved
and its call given back. Never decides whether a plan may run.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import msgspec
import trio

from frontend.calls.record import CallRecord
from frontend.clock import ClockError
from frontend.contract.execution import ExecutionResult, Runtime, VerificationOutcome, VerificationSummary
from frontend.errors import GateError
from frontend.notary.client import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.operations import Notary
from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.pool import NoWorker, Pools
from frontend.secrets.files import SecretMissing, Secrets, SecretsUnavailable
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from ipc import messages as m
from ipc.framing import FrameError
from ipc.identifiers import new
from ipc.plan import Plan, plan_hash

CLEAN_UP_SECONDS = 12.0
"""What a cancelled call may take to leave its evidence: beyond the deadline of one operation."""
FULLY_SUCCESSFUL = frozenset({"verified", "unverifiable_declared"})


@dataclass(frozen=True, slots=True)
class Executed:
    """A call that ran, whatever came of it, with its evidence durable."""

    plan: Plan
    opened: m.Opened
    closed: m.Closed
    output: str | None
    """JSON text; None unless the call succeeded."""

    @property
    def succeeded(self) -> bool:
        """True when the provider succeeded (verification may still have failed)."""
        return self.closed.kind == "success"

    def body(self) -> ExecutionResult:
        """The answer."""
        outcome = cast(VerificationOutcome, self.closed.verification_outcome)
        return ExecutionResult(
            trace_id=self.plan.trace_id,
            action_id=self.plan.action_id,
            grant_id=self.opened.grant_id,
            receipt_id=self.closed.receipt_id,
            output=msgspec.json.decode(self.output or "{}"),
            verification_outcome=outcome,
            verification=VerificationSummary(outcome=outcome, is_fully_successful=outcome in FULLY_SUCCESSFUL),
            runtime=Runtime(**self.closed.runtime),
        )


class _Report:
    """What is known of a dispatch: nothing yet, a worker's result, or why there is none."""

    __slots__ = ("lost", "result")

    def __init__(self) -> None:
        self.result: m.Result | None = None
        self.lost: str | None = None

    @property
    def outcome(self) -> str:
        """In the worker's words."""
        if self.result is not None:
            return self.result.outcome
        return "cut" if self.lost is None else "worker_lost"


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs plans. One instance serves every call of this front."""

    notary: Notary
    secrets: Secrets
    pools: Pools
    worker_wait_seconds: float
    metrics: Metrics
    epoch_now: Callable[[], int]
    """The epoch in force, by everything that has arrived from the notary."""

    async def run(
        self, record: CallRecord, plan: Plan, *, has_budget: bool, approver: m.Approver | None = None
    ) -> Executed:
        """Execute `plan` once.

        Raises GateError; `record.is_decided` says whether the event of that is written. After dispatch it can only be
        evidence_persistence_failed: then the intent stays unresolved and shows.
        """
        values = self._secret_values(plan)
        asked = self._asked(record, plan, has_budget, approver)
        opened = await self._open(record, asked)
        report, began = _Report(), time.perf_counter()
        owners = (f"principal {plan.principal}", f"session {plan.session_id}")
        try:
            async with self.pools.lease(plan.profile, plan.isolation, self.worker_wait_seconds, owners) as worker:
                self.metrics.worker_wait.observe(time.perf_counter() - began, plan.profile)
                await trio.lowlevel.checkpoint_if_cancelled()  # nothing has been executed: it may end here
                self._look_again(plan, approver)
                call = m.Call(plan.trace_id, plan, opened.grant, values, plan.limits.timeout_seconds)
                record.is_dispatched = True
                await self._dispatch(worker, call, report)
            closed = await self._close(asked.intent_id, report)
        except trio.Cancelled:
            await self._leave_evidence(record, asked.intent_id, report)
            raise
        except Exception as error:
            if record.is_dispatched:
                raise
            if isinstance(error, NoWorker):
                self.metrics.worker_wait.observe(time.perf_counter() - began, plan.profile)
            refusal = _refusal(error)
            await self._abandon(record, asked.intent_id, refusal)
            raise refusal from None
        record.is_decided = True
        return Executed(plan, opened, closed, report.result.output if report.result else None)

    def _secret_values(self, plan: Plan) -> dict[str, str]:
        if not plan.secrets:
            return {}
        try:
            return self.secrets.for_plan(plan.secrets)
        except SecretMissing as error:
            raise GateError("policy_denied", cause=str(error), deny_reason=str(error)) from None
        except SecretsUnavailable as error:
            raise GateError("internal_error", cause=str(error)) from None

    def _asked(self, record: CallRecord, plan: Plan, has_budget: bool, approver: m.Approver | None) -> m.Open:
        limits = plan.limits
        terms = m.Terms(
            plan_hash=plan_hash(plan), module_digest=plan.provider_module_digest, epoch=plan.epoch,
            verifier_kind=plan.verifier_kind, max_response_bytes=plan.max_response_bytes, fuel=limits.fuel,
            memory_mb=limits.memory_mb, timeout_seconds=limits.timeout_seconds, max_io_calls=limits.max_io_calls,
        )  # fmt: skip
        return m.Open(new("intent_"), record.event("allow"), terms, record.proof, has_budget, approver)

    async def _open(self, record: CallRecord, asked: m.Open) -> m.Opened:
        """SECURITY: proof, epoch, budget, intent and grant are one: a worker is told nothing before all of it holds."""
        try:
            opened = await self.notary.open(asked)
        except NotarySilent as error:
            unavailable = _unavailable(asked, error)
            await self._abandon(record, asked.intent_id, unavailable, is_doubtful=True)
            record.proof = None  # it may have been used by this very call, which would look like a replay then
            raise unavailable from None
        except (NotaryUnavailable, NotaryRefused) as error:
            raise _unavailable(asked, error) from None
        except trio.Cancelled:
            await self._abandon(record, asked.intent_id, GateError("draining"), is_doubtful=True)
            raise
        record.proof = None
        if isinstance(opened, m.Refusal):
            record.is_decided = True
            raise GateError(opened.code, cause=opened.cause)
        record.calls_before, record.calls_after = opened.calls_before, opened.calls_after
        return opened

    def _look_again(self, plan: Plan, approver: m.Approver | None) -> None:
        """SECURITY: what has waited for a worker is not dispatched once an operator knows that it is revoked."""
        in_force = self.epoch_now()
        if plan.epoch != in_force:
            code = "invalid_lease" if approver is None else "plan_integrity"
            raise GateError(code, cause=f"epoch {plan.epoch} of the call, {in_force} is in force")

    async def _dispatch(self, worker: WorkerChannel, call: m.Call, report: _Report) -> None:
        """Send one call; a worker that is lost is an outcome too."""
        began = time.perf_counter()
        try:
            report.result = await worker.call(call)
        except (WorkerLost, FrameError) as error:
            report.lost = str(error)
        finally:
            self.metrics.executed(call.plan.action_id, report.outcome, time.perf_counter() - began)

    async def _close(self, intent_id: str, report: _Report) -> m.Closed:
        """Receipt and event, durable. Raises GateError evidence_persistence_failed for whatever prevents them."""
        is_cut = report.result is None and report.lost is None
        try:
            return await self.notary.close(m.Close(intent_id, report.result, report.lost, is_cut))
        except (NotaryUnavailable, NotaryRefused, ClockError) as error:
            raise GateError("evidence_persistence_failed", cause=str(error)) from None

    async def _abandon(
        self, record: CallRecord, intent_id: str, error: GateError, *, is_doubtful: bool = False
    ) -> None:  # fmt: skip
        """Nothing was dispatched: resolve the intent. Raises nothing. `is_doubtful`: there may be no such intent."""
        asked = m.Abandon(intent_id, "error" if error.status >= 500 else "deny", error.code, error.cause)
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
                await self.notary.abandon(asked)
                record.is_abandoned = record.is_decided = True
                record.proof = None
        except (NotaryUnavailable, NotaryRefused, ClockError) as problem:
            if not is_doubtful:
                log.error("an intent without dispatch is left unresolved", intent_id=intent_id, cause=str(problem))

    async def _leave_evidence(self, record: CallRecord, intent_id: str, report: _Report) -> None:
        """The process leaves and the answer goes nowhere; what was dispatched leaves its receipt. Raises nothing."""
        if not record.is_dispatched:
            cause = "the gateway stopped before the call was dispatched"
            return await self._abandon(record, intent_id, GateError("draining", cause=cause))
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
                await self._close(intent_id, report)
                record.is_decided = True
        except GateError as error:
            log.error("a call that was cut left no receipt", trace_id=record.trace_id, cause=error.cause)


def _unavailable(asked: m.Open, error: NotaryUnavailable | NotaryRefused) -> GateError:
    """What a caller hears of an Open that had no answer."""
    if isinstance(error, NotaryUnavailable) and error.part == "budget":
        return GateError("budget_store_unavailable", cause=str(error))
    code = "evidence_persistence_failed" if asked.proof is None else "replay_cache_unavailable"
    return GateError(code, cause=str(error))


def _refusal(error: Exception) -> GateError:
    """What a caller hears of a call that was opened and not dispatched."""
    if isinstance(error, NoWorker):
        return GateError("overloaded", cause=str(error))
    if isinstance(error, GateError):
        return error
    log.error("a call failed by a fault of ours", exc_info=error)
    return GateError("internal_error")
