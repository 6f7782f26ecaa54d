"""The only path that runs a provider, for allowed and for approved calls alike.

secrets -> worker -> plan to the worker, intent to the notary -> output from the worker, evidence from the notary ->
answer. Guarantees: a worker runs the plan on the notary's word alone, which is given once the intent is durable; what
is answered is what the evidence says; a call that the end of this process cuts leaves its receipt, and one that its
worker has not begun is resolved and its call given back. Never decides whether a plan may run.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import trio

from frontend.calls.asking import open_for, refusal, terms_of, unavailable, withdrawal
from frontend.calls.executed import Executed
from frontend.calls.record import CallRecord
from frontend.calls.reserving import Reservation
from frontend.clock import ClockError
from frontend.deadlines import CallDeadlines
from frontend.errors import GateError, errors_as
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.waiting import Course, Waiter
from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.pool import Pools
from frontend.secrets.files import SecretMissing, Secrets, SecretsUnavailable
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from ipc import messages as m
from ipc.canonical import sha256_hex
from ipc.framing import FrameError
from ipc.limits import AHEAD_BYTES
from ipc.operations.calls import CallEnd
from ipc.plan import Plan, SealedPlan

CUT = "the gateway stopped before the call was dispatched"
NO_RESULT = frozenset({"worker_lost", "cut"})
"""Outcomes of calls whose worker has told nothing."""


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs plans. One instance serves every call of this front."""

    notary: NotaryClient
    secrets: Secrets
    pools: Pools
    worker_wait_seconds: float
    metrics: Metrics
    epoch_now: Callable[[bool], int]
    """The epoch in force as far as this front has heard; True: it first hears all that has arrived from the notary."""
    is_proxy_down: Callable[[], bool]
    """Whether the egress proxy, where there is one, did not answer when it was asked last."""
    deadlines: CallDeadlines = CallDeadlines()

    async def run(
        self, record: CallRecord, sealed: SealedPlan, *, has_budget: bool, approver: m.Approver | None = None
    ) -> Executed:
        """Execute the plan once.

        Raises GateError; `record.is_decided` says whether the event of that is written. After dispatch it can only be
        evidence_persistence_failed: then the intent stays unresolved and shows.
        """
        plan, encoded = sealed.plan, sealed.encoded
        self._check_way(plan)
        values = self._secret_values(plan)
        is_small = len(encoded) < AHEAD_BYTES
        may_wait = is_small and not plan.secrets
        may_share = is_small and plan.isolation == "shared"
        terms = terms_of(sealed)
        opened: m.Open | None = None
        try:
            for _ in range(self.deadlines.max_workers):
                is_patient = may_share or (may_wait and opened is None)
                async with Reservation(
                    self.pools, self.metrics, plan, self.worker_wait_seconds, is_patient=is_patient
                ) as worker:
                    self._look_again(plan, approver, hears=opened is not None)
                    asked = opened or open_for(record, plan, terms, worker, has_budget, approver)
                    call = m.Call(asked.intent_id, encoded, plan.limits.timeout_seconds)
                    ended = await self._run_at(worker, record, plan, call, asked, values, is_open=opened is not None)
                if isinstance(ended, Executed):
                    return ended
                if isinstance(ended, m.Unbegun):
                    opened, record.proof = asked, None
            cause = f"{self.deadlines.max_workers} workers ended before they began a call"
            raise GateError("overloaded", cause=cause)
        except (GateError, trio.Cancelled) as error:
            if opened is not None and not record.is_decided and not record.is_dispatched and record.unheard is None:
                told = error if isinstance(error, GateError) else GateError("draining", cause=CUT)
                await self._withdraw(record, opened, told)
            raise

    def check(self, plan: Plan) -> None:
        """Raise the GateError of a plan that can't be dispatched just now, through no fault of its own: a caller
        that checks first loses nothing by trying again."""
        self._check_way(plan)
        with suppress(SecretMissing):  # that is the plan's own, and its end
            self._values_of(plan)

    def _check_way(self, plan: Plan) -> None:
        """A proxy that hangs must not hold a worker for as long as each call may take."""
        if plan.egress.proxy_url is not None and self.is_proxy_down():
            raise GateError("action_execution_failed", cause="the egress proxy can't be reached: it answers nothing")

    def _secret_values(self, plan: Plan) -> dict[str, str]:
        with errors_as("action_execution_failed", SecretMissing):
            return self._values_of(plan)

    def _values_of(self, plan: Plan) -> dict[str, str]:
        """Raises SecretMissing; GateError while none can be read."""
        if not plan.secrets:
            return {}
        with errors_as("secrets_unavailable", SecretsUnavailable):
            return self.secrets.for_plan(plan.secrets)

    def _look_again(self, plan: Plan, approver: m.Approver | None, *, hears: bool) -> None:
        """SECURITY: a call that has waited for a worker is not dispatched once an operator knows that it is revoked.
        The notary looks at the epoch when it opens a call. When an intent passes to another worker the notary does not
        look again, so that the front first hears (`hears`) all that the notary has said."""
        in_force = self.epoch_now(hears)
        if plan.epoch != in_force:
            code = "invalid_lease" if approver is None else "plan_integrity"
            raise GateError(code, cause=f"epoch {plan.epoch} of the call, {in_force} is in force")

    async def _run_at(
        self, worker: WorkerChannel, record: CallRecord, plan: Plan, call: m.Call, asked: m.Open,
        values: dict[str, str], *, is_open: bool,
    ) -> Executed | m.NoSuchWorker | m.Unbegun:  # fmt: skip
        """The call at this worker: what it came to, or why it must go to another one. `is_open`: it has its intent."""
        began = time.perf_counter()
        operation = m.Assign(asked.intent_id, worker.worker_id, asked.wants_begun) if is_open else asked
        waiter = self._begin(worker, record, plan, asked, operation, values)
        try:
            await worker.give(call)
        except (WorkerLost, FrameError) as error:
            if self.notary.forget(waiter):
                if isinstance(error, WorkerLost):
                    return m.NoSuchWorker()
                raise GateError("internal_error", cause=str(error)) from None
        closed = await self._closed(worker, record, asked, waiter)
        if not isinstance(closed, m.Closed):
            return closed
        record.is_decided = True
        await trio.lowlevel.checkpoint_if_cancelled()  # a call that was cut has its evidence, and no answer
        output = await self._output(worker, plan, asked.intent_id, closed)
        self.metrics.executed(plan.action_id, closed.outcome, time.perf_counter() - began)
        if closed.violation is not None:
            self.metrics.schema_violated(plan.action_id)
            log.warning(
                "an answer breaks its response schema", action_id=plan.action_id, receipt_id=closed.receipt_id,
                violation=closed.violation, trace_id=plan.trace_id,
            )  # fmt: skip
        return Executed(plan, closed, output)

    def _begin(
        self, worker: WorkerChannel, record: CallRecord, plan: Plan, asked: m.Open, operation: m.Open | m.Assign,
        values: dict[str, str],
    ) -> Waiter[CallEnd]:  # fmt: skip
        """Queue what the notary is asked: it leaves when this task waits, by when the worker has the plan."""
        intent_id = asked.intent_id

        def begun() -> None:
            # SECURITY: a worker gets secrets once the intent of their use is durable.
            if plan.secrets:
                worker.give_secrets(intent_id, values)
                if worker.lost is not None:
                    self.pools.kill(worker, worker.lost)
            if plan.isolation == "shared":  # its worker runs others beside it
                return
            if worker.is_behind(intent_id):  # of a call that takes long: another worker begins this one sooner
                self.notary.post(m.Recall(intent_id))
            elif not asked.wants_begun:
                worker.is_slow = True

        def late() -> None:
            self.pools.kill(worker, "no result in time")

        def cut() -> None:
            self._begin_withdrawal(record, asked, GateError("draining", cause=CUT))
            if plan.isolation == "shared" or not worker.is_behind(intent_id):
                self.pools.cut(worker, intent_id, "its call was cut")

        seconds = plan.limits.timeout_seconds + self.pools.deadlines.grace_seconds
        course = Course(seconds, begun, late, cut)
        try:
            return self.notary.begin(operation, course)
        except (NotaryUnavailable, NotaryRefused) as error:
            raise unavailable(asked, error) from None

    async def _closed(
        self, worker: WorkerChannel, record: CallRecord, asked: m.Open, waiter: Waiter[CallEnd]
    ) -> m.Closed | m.NoSuchWorker | m.Unbegun:  # fmt: skip
        """Receipt and event, durable; or why another worker must run the call."""
        try:
            answer = await self.notary.answer_of(waiter)
        except (NotaryUnavailable, NotaryRefused, ClockError) as error:
            raise await self._unanswered(worker, record, asked, error) from None
        if isinstance(answer, m.Closed):
            return answer
        worker.drop(asked.intent_id)
        if isinstance(answer, m.NoSuchWorker):
            worker.give_up("the notary does not know it")  # or it would be tried again and again
        if isinstance(answer, m.NoSuchWorker | m.Unbegun):
            return answer
        record.proof, record.is_decided = None, True
        raise refusal(answer, self.metrics)

    async def _unanswered(
        self, worker: WorkerChannel, record: CallRecord, asked: m.Open,
        error: NotaryUnavailable | NotaryRefused | ClockError,
    ) -> GateError:  # fmt: skip
        """What a caller hears of a call without evidence of its end."""
        if isinstance(error, NotaryUnavailable) and error.is_begun:
            record.is_dispatched, record.proof = True, None  # it was used by this very call
            if not isinstance(error, NotarySilent):
                with suppress(WorkerLost):  # the worker has done its part, and goes on to serve others
                    await worker.result(asked.intent_id)
            return GateError("evidence_persistence_failed", cause=str(error))
        if isinstance(error, NotarySilent):
            told = unavailable(asked, error)
            self._begin_withdrawal(record, asked, told)
            self.pools.cut(worker, asked.intent_id, "the notary does not say whether its call may run")
            if asked.approver is None and self.notary.is_silent:
                record.unheard = asked
            else:
                await self._withdraw(record, asked, told)
            record.proof = None  # it may have been used by this very call, which would look like a replay then
            return told
        worker.drop(asked.intent_id)
        return error if isinstance(error, ClockError) else unavailable(asked, error)

    async def finish(self, record: CallRecord, error: GateError) -> None:
        """Wait for the result of a call whose caller already has its answer. Raises nothing."""
        if record.unheard is not None:
            await self._withdraw(record, record.unheard, error)

    def _begin_withdrawal(self, record: CallRecord, asked: m.Open, error: GateError) -> None:
        """Tell the notary that the call is given up: before its worker ends, since then nothing is left to withdraw.

        Raises nothing: what can't be told now is tried once more by `_withdraw`.
        """
        if record.withdrawal is None:
            with suppress(NotaryUnavailable, NotaryRefused):
                record.withdrawal = self._told_withdrawal(asked, error)

    def _told_withdrawal(self, asked: m.Open, error: GateError) -> Waiter[m.Withdrawn]:
        """Tell the notary at once. Raises NotaryUnavailable, NotaryRefused."""
        begun = self.notary.begin(withdrawal(asked, error))
        self.notary.flush()
        return begun

    async def _withdraw(self, record: CallRecord, asked: m.Open, error: GateError) -> None:
        """There may be an intent, and its worker may have the word. Raises nothing."""
        record.is_dispatched = True
        try:
            deadline = trio.current_time() + self.deadlines.clean_up_seconds
            with trio.CancelScope(shield=True, deadline=deadline):
                begun = record.withdrawal or self._told_withdrawal(asked, error)
                withdrawn = await self.notary.answer_of(begun)
                if withdrawn.is_abandoned:
                    record.is_abandoned = record.is_decided = True
        except NotaryRefused:
            record.is_dispatched = False  # there is no such intent
        except (NotaryUnavailable, ClockError) as problem:
            log.error("a call may have run without evidence", intent_id=asked.intent_id, cause=str(problem))

    async def _output(self, worker: WorkerChannel, plan: Plan, intent_id: str, closed: m.Closed) -> str | None:
        """What the worker answered, if it is what the evidence is about."""
        if closed.outcome in NO_RESULT:
            return None
        try:
            result = await worker.result(intent_id)
        except WorkerLost as error:
            log.error("the output of a call did not arrive", receipt_id=closed.receipt_id, cause=str(error))
            return None
        self.pools.brevity.note(plan.action_id, result.duration_us, result.fuel_consumed)
        if closed.kind != "success" or result.output is None:
            return None
        if sha256_hex(result.output.encode()) != closed.response_hash:
            worker.give_up("another output than the one it told the notary")
            log.error("a worker answered what is not in evidence", receipt_id=closed.receipt_id)
            return None
        return result.output
