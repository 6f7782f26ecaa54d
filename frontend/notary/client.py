"""The channel to the notary: operations of one turn of the loop are sent together, answers wake the waiting tasks.

Guarantees: a bounded number of operations without an answer, a deadline for each, and that an operation which a killed
notary did not answer is asked again of the next one, under the same number, so that it is performed once. Cancellation
does not interrupt an operation that was asked; it is delivered at the caller's next checkpoint.
"""

import contextlib
import itertools
import socket
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import trio

from frontend.clock import ClockError
from frontend.deadlines import NotaryDeadlines
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.link import FRONTS, Dialect, Heard, Link
from frontend.notary.pending import CallHooks, PendingOperation
from frontend.telemetry.logs import log
from ipc.channel.framing import FrameError, encode_frame
from ipc.limits import MAX_NOTARY_FRAME
from ipc.messages.delivering import Welcome, Woken
from ipc.messages.notary_frames import Answered, Begun, FrontFacts
from ipc.operations.operation import A, Operation, answer_type

MAX_WAITING = 4096
"""Operations without an answer; one more is refused at once."""
_NEVER = float("inf")


def _nothing(*_: Any) -> None:
    """The listener until another one is set."""


class NotaryClient:
    """The client of the notary in a front, the deliverer or the exporter. `run` must run while operations are asked.

    `on_in_force` is called with epoch and keys, before any answer that depends on them. In the deliverer `on_newest` is
    called with the time of the newest evidence, and `on_woken` with the endpoints that have new deliveries.
    """

    def __init__(self, deadlines: NotaryDeadlines = NotaryDeadlines(), dialect: Dialect = FRONTS) -> None:
        self.on_in_force: Callable[[FrontFacts], None] = _nothing
        self.on_newest: Callable[[float], None] = _nothing
        self.on_woken: Callable[[tuple[str, ...]], None] = _nothing
        self._dialect = dialect
        self.observe: Callable[[str, float, str | None, str | None], None] = _nothing
        """Called for each answer: operation, seconds, problem, and the part of the notary that has the problem."""
        self.observe_store: Callable[[str, float], None] = _nothing
        """Called for each request to the key-value store that an operation made: its name, seconds."""
        self._wait_seconds, self._greeting_seconds = deadlines.answer_seconds, deadlines.greeting_seconds
        self._numbers = itertools.count(1)
        self._decoders: dict[type[Operation[Any]], msgspec.msgpack.Decoder[Any]] = {}
        self._waiting: dict[int, PendingOperation[Any]] = {}
        self._given_up: weakref.WeakValueDictionary[int, PendingOperation[Any]] = weakref.WeakValueDictionary()
        """Operations without an answer in time, as long as a task remembers them: it may still come."""
        self._greeted = trio.Event()
        self._link = Link(self._hear, dialect)
        self._is_closed = False
        self.is_silent = False
        """An operation had no answer in time, and no message of the notary has come since."""
        self._patience = trio.CancelScope()

    # ------------------------------------------------------------------ asking

    @property
    def unanswered(self) -> int:
        """Operations without an answer."""
        return len(self._waiting)

    async def ask(self, operation: Operation[A], *, seconds: float | None = None) -> A:
        """Ask and wait. Raises NotaryUnavailable, NotaryRefused, ClockError: then nothing was written. Raises
        NotarySilent past the deadline: then it may be done, or may still be."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return await self.answer_of(self.begin(operation, seconds=seconds))

    def begin(
        self, operation: Operation[A], course: CallHooks | None = None, *, seconds: float | None = None
    ) -> PendingOperation[A]:  # fmt: skip
        """Ask, and have the answer from `answer_of`, which a call must await unless `forget` succeeds. Raises
        NotaryUnavailable, NotaryRefused: then nothing was asked."""
        if self._is_closed:
            raise NotaryUnavailable("the channel to the notary is closed")
        if len(self._waiting) >= MAX_WAITING:
            raise NotaryUnavailable(f"{MAX_WAITING} operations are waiting already")
        began = trio.current_time()
        deadline = began + (self._wait_seconds if seconds is None else seconds)
        waiter = self._queued(operation, began, deadline, course)
        self._waiting[waiter.number] = waiter
        if deadline < self._patience.deadline:
            self._be_patient_until(deadline)
        return waiter

    def post(self, operation: Operation[Any]) -> None:
        """Send an operation whose answer no task awaits. A later notary is not sent it again. Raises NotaryRefused."""
        if not self._is_closed:
            self._queued(operation, 0.0, 0.0, None)

    def flush(self) -> None:
        """Send the queued operations now, and not only when this task waits."""
        self._link.flush()

    def forget(self, waiter: PendingOperation[Any]) -> bool:
        """Take an operation back. False when it has been sent."""
        if not self._link.forget(waiter):
            return False
        del self._waiting[waiter.number]
        return True

    async def answer_of(self, waiter: PendingOperation[A]) -> A:
        """Wait for what `begin` asked. Raises as `ask` does."""
        await waiter.wait()
        answered, seconds = waiter.answer, trio.current_time() - waiter.began
        self._observe(waiter, seconds)
        if answered is None:
            is_late = trio.current_time() >= waiter.deadline
            raise NotarySilent(
                f"no answer within {seconds:.0f} s" if is_late else "the channel was closed", is_begun=waiter.is_begun
            )  # fmt: skip
        if answered.problem is not None:
            raise _error_of(answered)
        try:
            answer: A = self._decoder(waiter.operation).decode(answered.value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            log.error("the notary's answer can't be decoded", operation=waiter.kind, cause=str(error))
            raise NotarySilent("the answer can't be decoded", is_begun=waiter.is_begun) from None
        return answer

    def late_answer_of(self, waiter: PendingOperation[A]) -> A | None:
        """The answer of an operation that was given up, if it has come since, and is one."""
        if waiter.answer is None or waiter.answer.problem is not None:
            return None
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            answer: A = self._decoder(waiter.operation).decode(waiter.answer.value)
            return answer
        return None

    def _observe(self, waiter: PendingOperation[Any], seconds: float) -> None:
        answered = waiter.answer
        if answered is None:
            self.observe(waiter.kind, seconds, "silent", None)
            return
        for request, took_us in (answered.store_us or {}).items():
            self.observe_store(request, took_us / 1e6)
        if answered.took_us is None:
            self.observe(waiter.kind, seconds, answered.problem, answered.part)
            return
        intent_us, receipt_us = answered.took_us
        self.observe("Open", intent_us / 1e6, None, None)
        self.observe("Close", receipt_us / 1e6, answered.problem, answered.part)

    def _queued(
        self, operation: Operation[A], began: float, deadline: float, course: CallHooks | None
    ) -> PendingOperation[A]:
        number = next(self._numbers)
        asked = self._dialect.asked(number, operation)
        try:
            frame = encode_frame(asked, MAX_NOTARY_FRAME)
        except (FrameError, UnicodeEncodeError) as error:
            raise NotaryRefused(f"it can't be asked: {type(error).__name__}") from None
        waiter: PendingOperation[A] = PendingOperation(
            type(operation), number, frame, began, deadline, course, self._cancelled
        )
        self._link.queue(waiter, asked)
        return waiter

    def _decoder(self, operation: type[Operation[Any]]) -> "msgspec.msgpack.Decoder[Any]":
        decoder = self._decoders.get(operation)
        if decoder is None:
            decoder = self._decoders[operation] = msgspec.msgpack.Decoder(answer_type(operation))
        return decoder

    # ------------------------------------------------------------------ channel

    def attach(self, sock: socket.socket) -> None:
        """Take over the channel of a new notary. Operations that the previous one did not answer are asked again."""
        self.hear_now()  # an answer that has arrived must not be asked for again: the new notary may have forgotten it
        self._link.attach(sock, list(self._waiting.values()))

    def hear_now(self) -> None:
        """Read the messages that have arrived, without waiting."""
        self._link.hear_now()

    async def wait_greeted(self, seconds: float | None = None) -> None:
        """Wait for the first message of a notary. Raises NotaryUnavailable."""
        seconds = self._greeting_seconds if seconds is None else seconds
        with trio.move_on_after(seconds):
            await self._greeted.wait()
            return
        raise NotaryUnavailable(f"the notary did not speak within {seconds:g} s")

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve one notary after the other, until cancelled."""
        try:
            await self._link.run(task_status)
        finally:
            self.close()

    def close(self) -> None:
        """Close the channel for good; waiting tasks get NotarySilent."""
        self._is_closed = True
        self._link.drop()
        for waiter in list(self._waiting.values()):
            self._wake(waiter)

    def _hear(self, message: Heard) -> None:
        self.is_silent = False
        match message:
            case Answered():
                waiter = self._waiting.get(message.number)
                if waiter is not None:
                    waiter.answer = message
                    self._wake(waiter)
                elif (late := self._given_up.get(message.number)) is not None:
                    late.answer = message
            case Begun():
                self._begun(message.number)
            case Woken():
                self.on_woken(message.endpoints)
            case FrontFacts():
                self.on_in_force(message)
                self._greeted.set()
            case Welcome():
                self.on_newest(message.newest_evidence)
                self._greeted.set()

    def _wake(self, waiter: PendingOperation[Any]) -> None:
        del self._waiting[waiter.number]
        waiter.end()

    def _begun(self, number: int) -> None:
        """The call of this operation has begun: from now on its own time limit counts."""
        waiter = self._waiting.get(number)
        if waiter is not None and waiter.course is not None and not waiter.is_begun:
            waiter.is_begun = True
            waiter.deadline = trio.current_time() + waiter.course.seconds
            if waiter.deadline < self._patience.deadline:
                self._be_patient_until(waiter.deadline)
            waiter.course.begun()

    def _cancelled(self, waiter: PendingOperation[Any]) -> None:
        """The waiting task was cancelled: its operation gets a short deadline."""
        course, waiter.course = waiter.course, None
        if course is not None:
            waiter.deadline = min(waiter.deadline, trio.current_time() + self._wait_seconds)
            self._be_patient_until(min(waiter.deadline, self._patience.deadline))
            course.cancelled()

    # ------------------------------------------------------------------ deadlines

    def _be_patient_until(self, deadline: float) -> None:
        """One task watches the deadlines of all operations: a cancel scope for each would cost time."""
        if self._patience.deadline == _NEVER:
            self._patience = trio.CancelScope(deadline=deadline)
            trio.lowlevel.spawn_system_task(self._give_up_in_time, name="deadlines of the notary's answers")
        else:
            self._patience.deadline = deadline

    async def _give_up_in_time(self) -> None:
        """Wake tasks that have waited for too long. Ends when no task waits."""
        while True:
            with self._patience:
                await trio.sleep_forever()
            now = trio.current_time()
            for waiter in [waiter for waiter in self._waiting.values() if waiter.deadline <= now]:
                course, waiter.course = waiter.course, None
                if course is not None and waiter.is_begun:
                    waiter.deadline = now + self._wait_seconds
                    course.late()
                else:
                    self.is_silent = True
                    self._given_up[waiter.number] = waiter
                    self._wake(waiter)
            self._link.forget_ended()
            if not self._waiting:
                self._patience = trio.CancelScope()
                return
            self._patience = trio.CancelScope(deadline=min(waiter.deadline for waiter in self._waiting.values()))


def _error_of(answered: Answered) -> Exception:
    cause = answered.cause or "no cause given"
    if answered.is_begun:
        return NotaryUnavailable(cause, answered.part or "notary", is_begun=True)
    if answered.problem == "clock":
        return ClockError(cause)
    if answered.problem == "refused":
        return NotaryRefused(cause)
    return NotaryUnavailable(cause, answered.part or "notary")
