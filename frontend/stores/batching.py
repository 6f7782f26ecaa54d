"""The batching thread: the one mechanism by which trio tasks use a blocking store.

Tasks queue operations and wait; one thread takes everything queued, performs it as one unit (one transaction, one
pipeline) and wakes all waiters with a single `run_sync_soon`. Guarantees: a bounded queue, a deadline for every wait,
an operation that is either never begun or runs to its end whatever becomes of its waiter. Knows nothing of SQL or
Redis.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import trio

Op = TypeVar("Op")
Result = TypeVar("Result")

WAIT_SECONDS = 10.0
QUEUE_BOUND = 1024
UNIT_BOUND = 256
"""Operations in one unit: what bounds the time that another front waits for its turn."""
IDLE_SECONDS = 0.5
MAX_LINGER_SECONDS = 0.004
"""What a call may be kept waiting for company; three of its steps are units of a store."""
_LINGER_PER_COMPANION = 0.0015
_SIZE_SHARE = 0.25
_LEAST_COMPANY = 0.2


def _nothing() -> None:
    """What a store without idle work does."""


def _everybody(_op: object) -> bool:
    """Operations of a store that are all worth waiting for."""
    return True


def _not_now(_raise_cancel: object) -> trio.lowlevel.Abort:
    """A waiter is woken by the thread or by its deadline, and cancelled afterwards."""
    return trio.lowlevel.Abort.FAILED


class _Waiter(Generic[Op, Result]):
    __slots__ = ("deadline", "is_abandoned", "op", "outcome", "task")

    def __init__(self, op: Op, task: trio.lowlevel.Task, deadline: float) -> None:
        self.op = op
        self.task = task
        self.deadline = deadline
        self.is_abandoned = False
        self.outcome: Result | Exception | None = None


class BatchingThread(Generic[Op, Result]):
    """One queue, one thread, one store.

    `perform` gets the operations of one unit and returns, in order, a result or an exception for each. An exception in
    that list is raised in its waiter. One that `perform` raises itself fails the whole unit and reaches every waiter as
    `unavailable`, the store's own exception class.

    `turn` is held around each unit and is taken before the queue is emptied, so that whoever queues meanwhile still
    comes along and whoever has given up does not. `on_idle` is called in the thread once the queue has been empty for
    IDLE_SECONDS after a unit, `on_close` as the thread's last act. `pause` waits for company, this many seconds
    at most; `is_company` says which operations are worth waiting for: the others wait for one of them as long as that.

    Make it in the trio run that submits to it; `close` ends the thread.
    """

    def __init__(
        self, name: str, perform: Callable[[list[Op]], Sequence[Result | Exception]], *,
        unavailable: type[Exception], turn: AbstractContextManager[object] | None = None,
        on_idle: Callable[[], object] = _nothing, on_close: Callable[[], object] = _nothing,
        bound: int = QUEUE_BOUND, wait_seconds: float = WAIT_SECONDS, pause: Callable[[float], object] | None = None,
        is_company: Callable[[Op], bool] = _everybody,
    ) -> None:  # fmt: skip
        self._name = name
        self._perform = perform
        self._unavailable = unavailable
        self._turn = turn or contextlib.nullcontext()
        self._on_idle = on_idle
        self._on_close = on_close
        self._bound = bound
        self._wait_seconds = wait_seconds
        self._queue: queue.SimpleQueue[_Waiter[Op, Result] | None] = queue.SimpleQueue()
        self._pending = 0
        self._waiting: dict[_Waiter[Op, Result], None] = {}
        self._patience = trio.CancelScope()
        self._usual_size = 1.0
        self._is_idle = True
        self._is_closing = threading.Event()
        self._pause = pause or self._is_closing.wait
        self._is_company = is_company
        self._has_ended = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        # A daemon: a disk that hangs for ever must not keep the process from leaving.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def submit(self, op: Op, *, wait_seconds: float | None = None) -> Result:
        """Queue one operation and wait for its result.

        Once queued it is not interrupted by cancellation, which is delivered at the caller's next checkpoint: Cancelled
        means that nothing was done. The shield has a deadline, and past it, with a full queue or after `close`,
        raises `unavailable`; then an operation that the thread had begun may still be performed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_closing.is_set():
            raise self._unavailable(f"{self._name} is closed")
        if self._pending >= self._bound:
            raise self._unavailable(f"{self._name}: {self._bound} operations are waiting already")
        seconds = self._wait_seconds if wait_seconds is None else wait_seconds
        waiter: _Waiter[Op, Result] = _Waiter(op, trio.lowlevel.current_task(), trio.current_time() + seconds)
        self._waiting[waiter] = None
        if waiter.deadline < self._patience.deadline:
            self._be_patient_until(waiter.deadline)
        self._pending += 1
        self._queue.put(waiter)
        await trio.lowlevel.wait_task_rescheduled(_not_now)
        if waiter.is_abandoned:
            raise self._unavailable(f"{self._name} did not answer within {seconds:g} s")
        outcome = waiter.outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome  # type: ignore[return-value]  # the thread has put a Result there

    async def close(self, *, seconds: float = WAIT_SECONDS) -> bool:
        """Perform what is queued, then end the thread. Takes no more operations from now on; may be called twice.

        False when the thread has not ended within `seconds`: it is left to itself, and its waiters to their deadlines.
        """
        if not self._is_closing.is_set():
            self._is_closing.set()
            self._queue.put(None)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + seconds):
            await self._has_ended.wait()
        if self._has_ended.is_set():
            # What is left of the thread after its last call is a few instructions.
            self._thread.join(1.0)
        return self._has_ended.is_set()

    # ------------------------------------------------------------------ in the trio thread, sent by the thread

    def _wake(self, batch: list[_Waiter[Op, Result]]) -> None:
        self._pending -= len(batch)
        for waiter in batch:
            if not waiter.is_abandoned:
                del self._waiting[waiter]
                trio.lowlevel.reschedule(waiter.task)

    # ------------------------------------------------------------------ deadlines

    def _be_patient_until(self, deadline: float) -> None:
        """One task looks after the deadlines of all: a call has three operations, and a cancel scope is not free."""
        if self._patience.deadline == float("inf"):
            self._patience = trio.CancelScope(deadline=deadline)
            trio.lowlevel.spawn_system_task(self._give_up_in_time, name=f"deadlines of {self._name}")
        else:
            self._patience.deadline = deadline

    async def _give_up_in_time(self) -> None:
        """Wake whoever has waited for too long. Ends when nobody waits."""
        while True:
            with self._patience:
                await trio.sleep_forever()
            now = trio.current_time()
            for waiter in [waiter for waiter in self._waiting if waiter.deadline <= now]:
                waiter.is_abandoned = True
                del self._waiting[waiter]
                trio.lowlevel.reschedule(waiter.task)
            if not self._waiting:
                self._patience = trio.CancelScope()
                return
            self._patience = trio.CancelScope(deadline=min(waiter.deadline for waiter in self._waiting))

    # ------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        try:
            while (first := self._first()) is not None:
                begun = self._begun(first)
                if self._is_company(begun[-1].op):
                    self._linger()
                batch = self._unit(begun)
                self._token.run_sync_soon(self._wake, batch)
        except trio.RunFinishedError:
            pass  # nobody is left to wake
        finally:
            with contextlib.suppress(Exception):
                self._on_close()
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._has_ended.set)

    def _first(self) -> _Waiter[Op, Result] | None:
        """Wait for the next operation; None once `close` was called and all that was queued before is done."""
        if not self._is_idle:
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._is_idle = True
                with contextlib.suppress(Exception):
                    self._on_idle()
        first = self._queue.get()
        self._is_idle = False
        return first

    def _begun(self, first: _Waiter[Op, Result]) -> list[_Waiter[Op, Result]]:
        """The beginning of a unit. One that nobody's call waits for waits for one that does, to go along with it."""
        begun = [first]
        if self._is_company(first.op):
            return begun
        until = time.monotonic() + MAX_LINGER_SECONDS
        with contextlib.suppress(queue.Empty):
            while not self._is_company(begun[-1].op) and len(begun) < UNIT_BOUND:
                waiter = self._queue.get(timeout=max(0.0, until - time.monotonic()))
                if waiter is None:
                    self._queue.put(None)
                    break
                begun.append(waiter)
        return begun

    def _linger(self) -> None:
        """Let company arrive where there usually is some.

        A unit costs nearly the same for one as for many: its commit, and the interpreter, which every statement hands
        to the event loop and has to get back. Where units hold one operation each, nobody else is about to come, and
        none waits.
        """
        companions = self._usual_size - 1.0
        if companions > _LEAST_COMPANY:
            self._pause(min(companions * _LINGER_PER_COMPANION, MAX_LINGER_SECONDS))

    def _get_used_to(self, batch: list[_Waiter[Op, Result]]) -> None:
        count = sum(self._is_company(waiter.op) for waiter in batch)
        if count:
            self._usual_size += _SIZE_SHARE * (count - self._usual_size)

    def _unit(self, begun: list[_Waiter[Op, Result]]) -> list[_Waiter[Op, Result]]:
        batch: list[_Waiter[Op, Result]] = []
        try:
            with self._turn:
                batch = self._take(begun)
                self._get_used_to(batch)
                wanted = [waiter for waiter in batch if not waiter.is_abandoned]
                if wanted:
                    outcomes = self._perform([waiter.op for waiter in wanted])
                    for waiter, outcome in zip(wanted, outcomes, strict=True):
                        waiter.outcome = outcome
        except Exception as error:
            batch = batch or self._take(begun)
            for waiter in batch:
                failure = self._unavailable(f"{self._name}: {error}")
                failure.__cause__ = error
                waiter.outcome = failure
        return batch

    def _take(self, begun: list[_Waiter[Op, Result]]) -> list[_Waiter[Op, Result]]:
        batch = list(begun)
        with contextlib.suppress(queue.Empty):
            while len(batch) < UNIT_BOUND:
                waiter = self._queue.get_nowait()
                if waiter is None:
                    self._queue.put(None)
                    break
                batch.append(waiter)
        return batch
