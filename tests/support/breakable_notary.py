"""A front's way to a real notary, which a test can break: any operation, and the end of any call.

A fault is named after its operation. `Open` and `Assign` cover the whole of a call, until its evidence is durable;
`Close` is the second half of those: it is reached in the notary's own thread, once the worker has told its result or
has ended, and before anything of that is written.
"""

import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.link import FRONTS, Dialect
from frontend.notary.pending import CallHooks, PendingOperation
from ipc.operations.calls import Assign, Open, Withdraw
from ipc.operations.operation import Operation
from notary.database import DatabaseGone
from notary.units.tasks import NotOpen
from tests.support.notary_thread import NotaryThread

Asking = Callable[..., Awaitable[Any]]
Fault = Callable[[Asking, tuple[Any, ...], dict[str, Any]], Awaitable[Any]]


def refuses(error: Exception) -> Fault:
    """Do nothing."""

    async def fault(operation: Asking, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        await trio.lowlevel.checkpoint()
        raise error

    return fault


def does_and_says(error: Exception) -> Fault:
    """It is done, and the answer is lost: what a deadline that passes may mean."""

    async def fault(operation: Asking, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        await operation(*args, **kwargs)
        raise error

    return fault


def hangs(reached: trio.Event) -> Fault:
    """Is not asked until the asker is cancelled, and then gives up; `reached` tells that it would be."""

    async def fault(operation: Asking, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        reached.set()
        await trio.sleep_forever()

    return fault


def then(follow: Callable[[], None]) -> Fault:
    """It is done; then something else happens before its caller goes on."""

    async def fault(operation: Asking, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = await operation(*args, **kwargs)
        follow()
        return answer

    return fault


class _Closing:
    """The end of one call under the fault `Close`. The notary waits for it before it writes, at its first attempt."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._decided = trio.Event()
        self.answered = trio.Event()
        self.finished = trio.Event()
        self.error: Exception | None = None
        self._problem: Exception | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._is_begun = False

    def guard(self) -> None:
        """In the notary's thread. Raises what keeps it from closing the call."""
        if not self._is_begun:
            self._is_begun = True
            try:
                trio.from_thread.run(self._decide, trio_token=self._token)
            except trio.RunFinishedError:
                return
        if self._problem is not None:
            raise self._problem

    async def _decide(self) -> None:
        trio.lowlevel.spawn_system_task(self._run)
        await self._decided.wait()

    async def _run(self) -> None:
        try:
            await self._fault(self._close, (), {})
        except trio.Cancelled:
            raise
        except Exception as error:
            self.error = error
            if not self._decided.is_set():
                self._problem = _in_the_notary(error)
        finally:
            self._decided.set()
            self.finished.set()

    async def _close(self) -> None:
        self._decided.set()
        await self.answered.wait()

    async def raise_found(self) -> None:
        """Once the notary has answered: what the asker hears in place of that, if anything."""
        self.answered.set()
        if self._is_begun:
            with trio.CancelScope(shield=True):
                await self.finished.wait()
        match self.error:
            case None:
                return
            case NotarySilent() as error:
                raise NotarySilent(str(error), error.part, is_begun=True)
            case NotaryUnavailable() as error:
                raise NotaryUnavailable(str(error), error.part, is_begun=True)
            case NotaryRefused() as error:
                raise NotaryUnavailable(str(error), is_begun=True)
            case _ if self._problem is not None:
                return  # a fault of the notary's own: it says so itself
            case error:
                raise error


def _in_the_notary(error: Exception) -> Exception:
    """The error there that this front hears."""
    match error:
        case NotaryRefused():
            return NotOpen(str(error))
        case NotaryUnavailable():
            return DatabaseGone(str(error))
        case _:
            return error


class BreakableClient(NotaryClient):
    """`faults` maps names of operations to their faults."""

    def __init__(self, dialect: Dialect = FRONTS) -> None:
        super().__init__(dialect=dialect)
        self.faults: dict[str, Fault] = {}
        self.asked: list[str] = []
        self.on_begun: Callable[[], None] = lambda: None
        """Called for every call that a worker may run, when this front is notified of it."""
        self.patience: dict[str, float] = {}
        """Operation -> seconds until it is given up, where the test wants others than usual."""
        self._unasked: dict[PendingOperation[Any], Callable[[], PendingOperation[Any]]] = {}
        self._withdraws = threading.Event()
        self._closings: dict[str, _Closing] = {}
        self._closing_of: dict[PendingOperation[Any], _Closing] = {}

    def guard(self, notary: NotaryThread) -> None:
        """Have the fault `Close` reached by this notary."""
        notary.guard_closes(self._guard_close)

    def gives_up_opens(self, notary: NotaryThread) -> None:
        """Opens are done all the same, once this front has given them up and is about to withdraw them."""
        self.patience["Open"] = 0.1
        notary.guard_opens(self._withdraws.wait)

    def _guard_close(self, intent_id: str) -> None:
        closing = self._closings.get(intent_id)
        if closing is not None:
            closing.guard()

    async def ask(self, operation: Operation[Any], *, seconds: float | None = None) -> Any:
        """As NotaryClient.ask, unless the test wants something else."""
        name = type(operation).__name__
        self.asked.append(name)
        fault = self.faults.get(name)
        if fault is None:
            return await super().ask(operation, seconds=seconds)
        try:
            return await fault(super().ask, (operation,), {"seconds": seconds})
        except NotaryUnavailable as error:
            self.observe(name, 0.0, "unavailable", error.part)
            raise

    def begin(
        self, operation: Operation[Any], course: CallHooks | None = None, *, seconds: float | None = None
    ) -> PendingOperation[Any]:  # fmt: skip
        """As NotaryClient.begin. An operation with a fault is sent only when its answer is awaited."""
        name = type(operation).__name__
        if course is None and name != "Withdraw":
            return super().begin(operation, seconds=seconds)
        self.asked.append(name)
        if isinstance(operation, Withdraw):
            self._withdraws.set()
        elif (fault := self.faults.get("Close")) is not None:
            assert isinstance(operation, Open | Assign), "nothing else has a course"
            self._closings[operation.intent_id] = _Closing(fault)
        closing = None if course is None else self._closings.get(getattr(operation, "intent_id", ""))
        begin = partial(super().begin, operation, course, seconds=self.patience.get(name, seconds))
        if name not in self.faults:
            return self._noted(begin(), closing)
        waiter = PendingOperation(type(operation), 0, b"", 0.0, 0.0, course, lambda _waiter: None)
        self._unasked[waiter] = lambda: self._noted(begin(), closing)
        return waiter

    def _noted(self, waiter: PendingOperation[Any], closing: _Closing | None) -> PendingOperation[Any]:
        if closing is not None:
            self._closing_of[waiter] = closing
        return waiter

    def forget(self, waiter: PendingOperation[Any]) -> bool:
        """As NotaryClient.forget."""
        if self._unasked.pop(waiter, None) is not None:
            return True
        return super().forget(waiter)

    async def answer_of(self, waiter: PendingOperation[Any]) -> Any:
        """As NotaryClient.answer_of, unless the test wants something else."""
        begin = self._unasked.pop(waiter, None)
        if begin is None:
            return await self._ended(waiter)

        async def asked() -> Any:
            return await self._ended(begin())

        try:
            return await self.faults[waiter.kind](asked, (), {})
        except NotaryUnavailable as error:
            if not error.is_begun:
                self.observe(waiter.kind, 0.0, "unavailable", error.part)
            raise

    async def _ended(self, waiter: PendingOperation[Any]) -> Any:
        closing = self._closing_of.pop(waiter, None)
        if closing is None:
            return await super().answer_of(waiter)
        try:
            decoded = await super().answer_of(waiter)
        except NotaryUnavailable:
            await closing.raise_found()
            raise
        await closing.raise_found()
        return decoded

    def _begun(self, number: int) -> None:
        waiter = self._waiting.get(number)
        is_news = waiter is not None and not waiter.is_begun
        super()._begun(number)
        if is_news:
            self.on_begun()
