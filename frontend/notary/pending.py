"""Operations that wait for their answer, and the calls that run meanwhile."""

from collections.abc import Callable
from typing import Any, Generic

import msgspec
import trio

from ipc.messages.notary_frames import Answered
from ipc.operations.operation import A, Operation


class CallHooks(msgspec.Struct, frozen=True):
    """Callbacks of an operation that is answered only when its call has ended. They neither wait nor raise."""

    seconds: float
    """From `Begun` to `late`."""
    begun: Callable[[], None]
    """The intent is durable, and the call has begun."""
    late: Callable[[], None]
    """The call has had its time. From now on its answer must come within the client's own deadline."""
    cancelled: Callable[[], None]
    """The waiting task was cancelled. The deadline is the same as after `late`."""


class PendingOperation(Generic[A]):
    """One operation that is answered with an `A`, from its frame to its answer. `answer` stays None where there was
    none in time."""

    __slots__ = ("__weakref__", "_on_cancel", "answer", "began", "course", "deadline", "frame", "is_begun", "is_done",
                 "is_sent", "number", "operation", "task")  # fmt: skip

    def __init__(
        self, operation: type[Operation[A]], number: int, frame: bytes, began: float, deadline: float,
        course: CallHooks | None, on_cancel: "Callable[[PendingOperation[Any]], None]",
    ) -> None:  # fmt: skip
        """`on_cancel` is called when the waiting task is cancelled, at most once."""
        self.operation = operation
        self.number = number
        self.frame = frame
        self.began = began
        self.deadline = deadline
        self.course = course
        self.answer: Answered | None = None
        self.is_begun = False
        self.is_done = False
        self.is_sent = False
        """Some of its frame may have left."""
        self.task: trio.lowlevel.Task | None = None
        self._on_cancel = on_cancel

    @property
    def kind(self) -> str:
        """The name of the operation."""
        return self.operation.__name__

    async def wait(self) -> None:
        """Until `end`. Not interrupted by cancellation, which is delivered at the next checkpoint."""
        if not self.is_done:
            self.task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._not_now)

    def end(self) -> None:
        """End the wait: the answer has come, or is given up. The hooks are let go: they refer to a call that refers to
        this operation, and such a circle would wait for the garbage collector."""
        self.is_done, self.course = True, None
        if self.task is not None:
            trio.lowlevel.reschedule(self.task)

    def _not_now(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._on_cancel(self)
        return trio.lowlevel.Abort.FAILED
