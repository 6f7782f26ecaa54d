"""One attempt to run a call: its plan at one worker, its intent at the notary, its result and its evidence.

Guarantees that the worker has the plan before the notary can permit it to run, that the worker gets secrets only once
the intent is durable, and that the answer is the output whose hash is in evidence. An attempt ends with the evidence of
the call, with the reason why another worker must run it, or with a GateError. Never decides whether a call may run.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
import trio

from frontend.calls.asking import refusal, repeats, unavailable
from frontend.calls.caps import MustBeHeld
from frontend.calls.executed import ExecutedCall
from frontend.calls.plan_secrets import TokenRenewal
from frontend.calls.record import CallRecord
from frontend.calls.withdrawing import begin_withdrawal, withdraw
from frontend.clock import ClockError
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.pending import CallHooks, PendingOperation
from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.pool import Pools
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from ipc.channel.framing import FrameError
from ipc.messages.calling import Call
from ipc.operations.calls import (
    Assign,
    CallEnd,
    Closed,
    HeldByCap,
    NoSuchWorker,
    Open,
    Recall,
    RepeatedCall,
    Unbegun,
)
from ipc.plan import Plan, SealedPlan
from ipc.texts.canonical import sha256_hex

CUT: Final = "the gateway stopped before the call was dispatched"
UNAUTHORIZED: Final = 401
NO_RESULT: Final = frozenset({"worker_lost", "cut"})
"""Outcomes of calls whose worker sent no result."""
NotRun = NoSuchWorker | Unbegun
"""Answers after which a different worker must run the call. After `Unbegun` the call keeps its intent."""


class Attempt(msgspec.Struct, frozen=True):
    """A call at one worker."""

    notary: NotaryClient
    pools: Pools
    metrics: Metrics
    withdrawal_seconds: float
    record: CallRecord
    sealed: SealedPlan
    secrets: Mapping[str, str]
    """Values of the plan's secrets."""
    note_refused: Callable[[Plan, Mapping[str, str]], None]
    """Called with them once an upstream has answered 401, unless the broker has heard of it meanwhile."""
    renewal: TokenRenewal | None
    """The source of another token for this call; None for a call without tokens."""
    worker: WorkerChannel
    opening: Open
    """The question that opens the call, or opened it for an earlier attempt."""
    is_open: bool
    """The call has its intent from an earlier attempt."""

    async def run(self) -> ExecutedCall | NotRun:
        """Run the call to its evidence. Raises GateError; the record says whether the event of that is written."""
        plan, began = self.sealed.plan, time.perf_counter()
        waiter = self._begin()
        try:
            await self.worker.give(Call(self.opening.intent_id, self.sealed.encoded, plan.limits.timeout_seconds))
        except (WorkerLost, FrameError) as error:
            if self.notary.forget(waiter):
                if isinstance(error, WorkerLost):
                    return NoSuchWorker()
                raise GateError("internal_error", cause=str(error)) from None
        end = await self._end(waiter)
        if not isinstance(end, Closed):
            return end
        await trio.lowlevel.checkpoint_if_cancelled()  # a call that was cut has its evidence, and no answer
        output = await self._output(end)
        self.metrics.executed(plan.action_id, end.outcome, time.perf_counter() - began)
        if end.violation is not None:
            self.metrics.schema_violated(plan.action_id)
            log.warning(
                "an answer breaks its response schema", action_id=plan.action_id, receipt_id=end.receipt_id,
                violation=end.violation, trace_id=plan.trace_id,
            )  # fmt: skip
        return ExecutedCall(plan.trace_id, plan.action_id, end, output)

    # ------------------------------------------------------------------ the notary

    def _begin(self) -> PendingOperation[CallEnd]:
        """Queue the question. It leaves when this task waits: by then the worker has the plan. Raises GateError."""
        asked = self.opening
        question = Assign(asked.intent_id, self.worker.worker_id, asked.wants_begun) if self.is_open else asked
        seconds = self.sealed.plan.limits.timeout_seconds + self.pools.deadlines.grace_seconds
        try:
            hooks = CallHooks(seconds, self._begun, self._late, self._cancelled)
            self.record.opening = waiter = self.notary.begin(question, hooks)
        except (NotaryUnavailable, NotaryRefused) as error:
            raise unavailable(asked, error) from None
        return waiter

    def _begun(self) -> None:
        """The intent is durable, and the worker has the permit to run."""
        plan, worker, intent_id = self.sealed.plan, self.worker, self.opening.intent_id
        if plan.secrets:
            # SECURITY: a worker gets secrets once the intent of their use is durable.
            worker.give_secrets(intent_id, self.secrets)
            if worker.lost is not None:
                self.pools.kill(worker, worker.lost)
            elif self.renewal is not None:
                self.pools.renew(worker, intent_id, self.renewal.ways, self.renewal.values)
        if plan.isolation == "shared":  # its worker runs other calls beside it
            return
        if worker.is_behind(intent_id):  # the call before it takes long: another worker begins this one sooner
            self.notary.post(Recall(intent_id))
        elif not self.opening.wants_begun:
            worker.is_slow = True

    def _late(self) -> None:
        self.pools.kill(self.worker, "no result in time")

    def _cancelled(self) -> None:
        intent_id = self.opening.intent_id
        begin_withdrawal(self.notary, self.record, self.opening, GateError("draining", cause=CUT))
        if self.sealed.plan.isolation == "shared" or not self.worker.is_behind(intent_id):
            self.pools.cut(self.worker, intent_id, "its call was cut")

    async def _end(self, waiter: PendingOperation[CallEnd]) -> Closed | NotRun:
        """Receipt and event, durable; or why another worker must run the call. Raises GateError, MustBeHeld."""
        try:
            answer = await self.notary.answer_of(waiter)
        except (NotaryUnavailable, NotaryRefused, ClockError) as error:
            raise await self._unanswered(error) from None
        if isinstance(answer, Closed):
            self.record.is_decided = True
            self._note_times(waiter)
            return answer
        self.worker.drop(self.opening.intent_id)
        if isinstance(answer, NoSuchWorker):
            self.worker.give_up("the notary does not know it")  # or it would be tried again and again
            return answer
        if isinstance(answer, HeldByCap):
            raise MustBeHeld
        self.record.proof = None
        if isinstance(answer, Unbegun):
            return answer
        if isinstance(answer, RepeatedCall):
            raise repeats(self.record, answer)
        self.record.is_decided, self.record.held = True, answer.held
        raise refusal(answer, self.metrics)

    def _note_times(self, waiter: PendingOperation[CallEnd]) -> None:
        if self.record.trace is not None and waiter.answer is not None:
            answered = time.monotonic()
            self.record.trace.notary = (answered - (trio.current_time() - waiter.began), answered)
            self.record.trace.writes_us = waiter.answer.took_us

    async def _unanswered(self, error: NotaryUnavailable | NotaryRefused | ClockError) -> GateError:
        """The error of a call without evidence of its end."""
        record, worker, asked = self.record, self.worker, self.opening
        if isinstance(error, NotarySilent):
            record.unanswered = asked.intent_id
        if isinstance(error, NotaryUnavailable) and error.is_begun:
            record.is_dispatched, record.proof = True, None  # it was used by this very call
            if not isinstance(error, NotarySilent):
                with suppress(WorkerLost):  # the worker has done its part, and can serve other calls
                    await worker.result(asked.intent_id)
            return GateError("evidence_persistence_failed", cause=str(error))
        if isinstance(error, NotarySilent):
            told = unavailable(asked, error)
            begin_withdrawal(self.notary, record, asked, told)
            self.pools.cut(worker, asked.intent_id, "the notary does not say whether its call may run")
            if asked.approver is None and self.notary.is_silent:
                record.unheard = asked
            else:
                await withdraw(self.notary, record, asked, told, self.withdrawal_seconds)
            record.proof = None  # it may have been used by this very call, which would look like a replay then
            return told
        worker.drop(asked.intent_id)
        return error if isinstance(error, ClockError) else unavailable(asked, error)

    # ------------------------------------------------------------------ the worker

    async def _output(self, closed: Closed) -> str | None:
        """The worker's output, if it has the hash that is in evidence."""
        if closed.outcome in NO_RESULT:
            return None
        try:
            result = await self.worker.result(self.opening.intent_id)
        except WorkerLost as error:
            log.error("the output of a call did not arrive", receipt_id=closed.receipt_id, cause=str(error))
            return None
        if self.record.trace is not None:
            self.record.trace.result = result
        self.pools.brevity.note(self.sealed.plan.action_id, result.duration_us, result.fuel_consumed)
        is_known = self.renewal is not None and self.renewal.is_answered
        if not is_known and any(seen.status == UNAUTHORIZED for seen in result.observations):
            self.note_refused(self.sealed.plan, self.secrets)
        if closed.kind != "success" or result.output is None:
            return None
        if sha256_hex(result.output.encode()) != closed.response_hash:
            self.worker.give_up("another output than the one it told the notary")
            log.error("a worker answered what is not in evidence", receipt_id=closed.receipt_id)
            return None
        return result.output
