"""The channel to the notary: what one turn of the loop asks goes out together, answers wake who waits.

Guarantees: a bounded number of operations under way, a deadline for each, and that an operation which a notary did not
answer before it was killed is asked again of the next one, under the same number, so that it is done once. Once asked,
an operation is not interrupted by cancellation, which is delivered at the caller's next checkpoint.
"""

import contextlib
import itertools
import socket
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
import trio

from frontend.clock import ClockError
from frontend.telemetry.logs import log
from ipc import messages as m
from ipc.blocking import ChannelClosed
from ipc.directions import sessions_of
from ipc.framing import Decoder, FrameError, encode_frame
from ipc.limits import MAX_NOTARY_FRAME
from ipc.sessions import NOTARY_TO_FRONT, ProtocolError

T = TypeVar("T")

WAIT_SECONDS = 10.0
MAX_WAITING = 4096
"""Operations that are not answered; one more is refused at once."""
READ_BYTES = 1 << 18
_NEVER = float("inf")


class NotaryUnavailable(Exception):
    """The notary can't be asked, or could not write or read. `part` is what failed: store, budget, approvals, ledger,
    keys, or notary where nothing was answered."""

    def __init__(self, cause: str, part: str = "notary") -> None:
        super().__init__(cause)
        self.part = part


class NotarySilent(NotaryUnavailable):
    """There was no answer, or none that makes sense: the operation may be done all the same."""


class NotaryRefused(Exception):
    """The notary works, and what was asked contradicts what it holds. Nothing was written."""


def _not_now(_raise_cancel: object) -> trio.lowlevel.Abort:
    """A waiter is woken by its answer or by its deadline, and cancelled afterwards."""
    return trio.lowlevel.Abort.FAILED


class _Waiter:
    __slots__ = ("answer", "deadline", "frame", "number", "task")

    def __init__(self, number: int, frame: bytes, task: trio.lowlevel.Task, deadline: float) -> None:
        self.number = number
        self.frame = frame
        self.task = task
        self.deadline = deadline
        self.answer: m.Answered | None = None


def _nothing(*_: Any) -> None:
    """Nobody listens yet."""


class _Outgoing(trio.abc.Instrument):
    """Sends what one turn of the loop has queued, just before the loop would sleep: no task has to be woken for it."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        """The loop has run every task that could run."""
        self._flush()


class NotaryClient:
    """One front's way to the notary. `run` must be at work while anything is asked.

    `on_in_force` hears what the notary says of epoch and keys, before any answer that depends on it; `on_woken` the
    names of endpoints that deliveries were written for.
    """

    def __init__(self, monotonic: Callable[[], float] | None = None, wait_seconds: float = WAIT_SECONDS) -> None:
        self.on_in_force: Callable[[m.InForce], None] = _nothing
        self.on_woken: Callable[[tuple[str, ...]], None] = _nothing
        self.observe: Callable[[str, float, str | None], None] = _nothing
        """Hears of each answer: operation, seconds, problem."""
        self._monotonic = monotonic or trio.current_time
        self._wait_seconds = wait_seconds
        self._numbers = itertools.count(1)
        self._decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
        self._waiting: dict[int, _Waiter] = {}
        self._queue: list[_Waiter] = []
        self._unsent = memoryview(b"")
        self._sock: socket.socket | None = None
        self._decoder_in: Decoder[m.InForce | m.Answered | m.Woken] = Decoder(m.NotaryToFront, MAX_NOTARY_FRAME)
        self._session, self._sending = sessions_of(NOTARY_TO_FRONT, "new")
        self._attached = trio.Event()
        self._greeted = trio.Event()
        self._is_closed = False
        self._is_pushing = False
        self._push = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        self._patience = trio.CancelScope()

    # ------------------------------------------------------------------ asking

    async def ask(self, operation: m.Operation, answer: type[T], *, seconds: float | None = None) -> T:
        """Ask and wait. Raises NotaryUnavailable, NotaryRefused, ClockError: then nothing was written. Raises
        NotarySilent past the deadline: then it may be done, or may still be."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_closed:
            raise NotaryUnavailable("the channel to the notary is closed")
        if len(self._waiting) >= MAX_WAITING:
            raise NotaryUnavailable(f"{MAX_WAITING} operations are waiting already")
        began = trio.current_time()
        deadline = began + (self._wait_seconds if seconds is None else seconds)
        number = next(self._numbers)
        asked = m.Asked(number, cast(Any, operation))
        self._sending.accept(asked)
        try:
            frame = encode_frame(asked, MAX_NOTARY_FRAME)
        except (FrameError, UnicodeEncodeError) as error:
            raise NotaryRefused(f"it can't be asked: {type(error).__name__}") from None
        waiter = self._waiting[number] = _Waiter(number, frame, trio.lowlevel.current_task(), deadline)
        self._queue.append(waiter)
        if deadline < self._patience.deadline:
            self._be_patient_until(deadline)
        await trio.lowlevel.wait_task_rescheduled(_not_now)
        answered = waiter.answer
        self.observe(type(operation).__name__, trio.current_time() - began, _problem_of(answered))
        if answered is None:
            is_late = trio.current_time() >= deadline
            raise NotarySilent(f"no answer within {deadline - began:g} s" if is_late else "the channel was closed")
        if answered.problem is not None:
            raise _error_of(answered)
        try:
            return cast(T, self._decoder(answer).decode(answered.value))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            log.error("the notary's answer makes no sense", operation=type(operation).__name__, cause=str(error))
            raise NotarySilent("the answer makes no sense") from None

    def _decoder(self, answer: Any) -> "msgspec.msgpack.Decoder[Any]":
        decoder = self._decoders.get(answer)
        if decoder is None:
            decoder = self._decoders[answer] = msgspec.msgpack.Decoder(answer)
        return decoder

    # ------------------------------------------------------------------ channel

    def attach(self, sock: socket.socket) -> None:
        """A fresh notary's channel; ours from now on. What the one before did not answer is asked again."""
        self.hear_now()  # what was answered before the end is done, and may be forgotten by now
        self._drop()
        sock.setblocking(False)
        self._sock = sock
        self._decoder_in = Decoder(m.NotaryToFront, MAX_NOTARY_FRAME)
        self._session, self._sending = sessions_of(NOTARY_TO_FRONT, "new")
        self._unsent = memoryview(b"")
        self._queue = list(self._waiting.values())
        self._attached.set()

    async def wait_greeted(self, seconds: float) -> None:
        """Until the first word of a notary. Raises NotaryUnavailable."""
        with trio.move_on_after(seconds):
            await self._greeted.wait()
            return
        raise NotaryUnavailable(f"the notary did not speak within {seconds:g} s")

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hear one notary after the other, until cancelled."""
        outgoing = _Outgoing(self._flush)
        trio.lowlevel.add_instrument(outgoing)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_pushing)
                task_status.started()
                while True:
                    await self._attached.wait()
                    self._attached = trio.Event()
                    await self._hear()
        finally:
            trio.lowlevel.remove_instrument(outgoing)
            self.close()

    def close(self) -> None:
        """Ask nothing any more; who waits hears that nothing was answered."""
        self._is_closed = True
        self._drop()
        for waiter in list(self._waiting.values()):
            self._wake(waiter)

    def hear_now(self) -> None:
        """Take what has arrived, without waiting. What is wrong with it is found by who waits for it."""
        with contextlib.suppress(ChannelClosed, OSError, FrameError, ProtocolError):
            while self._sock is not None and self._take(self._sock):
                pass

    async def _hear(self) -> None:
        sock = self._sock
        if sock is None:
            return
        try:
            while self._sock is sock:
                await trio.lowlevel.wait_readable(sock)
                self._take(sock)
        except (ChannelClosed, OSError, trio.ClosedResourceError):
            reason = "closed its channel"
        except (FrameError, ProtocolError) as error:
            reason = f"broke the protocol: {error}"
        else:
            return
        if self._sock is sock:
            log.warning("the notary is gone; what it did not answer waits for the next one", reason=reason)
            self._drop()

    def _take(self, sock: socket.socket) -> bool:
        """Take one read's worth of answers; False when there is nothing."""
        try:
            data = sock.recv(READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            raise ChannelClosed
        self._decoder_in.feed(data)
        while (message := self._decoder_in.next_message()) is not None:
            self._session.accept(message)
            self._answer(message)
        return True

    def _answer(self, message: m.InForce | m.Answered | m.Woken) -> None:
        match message:
            case m.Answered():
                waiter = self._waiting.get(message.number)
                if waiter is not None:
                    waiter.answer = message
                    self._wake(waiter)
            case m.Woken():
                self.on_woken(message.endpoints)
            case m.InForce():
                self.on_in_force(message)
                self._greeted.set()

    def _wake(self, waiter: _Waiter) -> None:
        del self._waiting[waiter.number]
        trio.lowlevel.reschedule(waiter.task)

    def _flush(self) -> None:
        """Send what is queued, as far as the socket takes it. Called where no task runs."""
        sock = self._sock
        if sock is None:
            return
        try:
            while self._unsent or self._queue:
                if not self._unsent:  # not sooner: an operation that is given up meanwhile takes its frame with it
                    self._unsent = memoryview(b"".join([waiter.frame for waiter in self._queue]))
                    self._queue.clear()
                self._unsent = self._unsent[sock.send(self._unsent) :]
        except BlockingIOError:
            if not self._is_pushing:
                self._is_pushing = True
                self._token.run_sync_soon(self._push.set)  # which ends the wait that is about to begin, too
        except OSError:
            return  # whoever hears finds the end too

    async def _keep_pushing(self) -> None:
        """Send the rest of what the socket did not take at once."""
        while True:
            await self._push.wait()
            self._push = trio.Event()
            with contextlib.suppress(OSError, trio.ClosedResourceError):  # whoever hears finds the end too
                if self._sock is not None and self._unsent:
                    await trio.lowlevel.wait_writable(self._sock)
            self._is_pushing = False
            self._flush()

    def _drop(self) -> None:
        sock, self._sock = self._sock, None
        self._unsent = memoryview(b"")
        if sock is not None:
            trio.lowlevel.notify_closing(sock)
            sock.close()

    # ------------------------------------------------------------------ deadlines

    def _be_patient_until(self, deadline: float) -> None:
        """One task looks after the deadlines of all: a cancel scope for each would not be free."""
        if self._patience.deadline == _NEVER:
            self._patience = trio.CancelScope(deadline=deadline)
            trio.lowlevel.spawn_system_task(self._give_up_in_time, name="deadlines of the notary's answers")
        else:
            self._patience.deadline = deadline

    async def _give_up_in_time(self) -> None:
        """Wake who has waited for too long. Ends when nobody waits."""
        while True:
            with self._patience:
                await trio.sleep_forever()
            now = trio.current_time()
            for waiter in [waiter for waiter in self._waiting.values() if waiter.deadline <= now]:
                self._wake(waiter)
            self._queue = [waiter for waiter in self._queue if waiter.number in self._waiting]
            if not self._waiting:
                self._patience = trio.CancelScope()
                return
            self._patience = trio.CancelScope(deadline=min(waiter.deadline for waiter in self._waiting.values()))


def _problem_of(answered: m.Answered | None) -> str | None:
    return "silent" if answered is None else answered.problem


def _error_of(answered: m.Answered) -> Exception:
    cause = answered.cause or "no cause given"
    if answered.problem == "clock":
        return ClockError(cause)
    if answered.problem == "refused":
        return NotaryRefused(cause)
    return NotaryUnavailable(cause, answered.part or "notary")
