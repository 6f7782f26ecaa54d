"""Operations that wait for their answer, and what becomes of them in the meantime."""

from collections.abc import Callable
from dataclasses import dataclass

import trio

from ipc import messages as m


@dataclass(frozen=True, slots=True)
class Course:
    """How an operation goes on that is answered only when its call has ended. No function waits or raises."""

    seconds: float
    """From `Begun` to `late`."""
    begun: Callable[[], None]
    """The intent is durable, and the call has begun."""
    late: Callable[[], None]
    """The call has had its time. Its answer has the client's own patience from now on, and no longer."""
    cancelled: Callable[[], None]
    """The waiting task was cancelled. The wait goes on, as after `late`."""


class Waiter:
    """One operation, from its frame to its answer. `answer` stays None where there was none in time."""

    __slots__ = ("_on_cancel", "answer", "began", "course", "deadline", "frame", "is_begun", "is_done",
                 "is_sent", "kind", "number", "task")  # fmt: skip

    def __init__(
        self, kind: str, number: int, frame: bytes, began: float, deadline: float, course: Course | None,
        on_cancel: "Callable[[Waiter], None]",
    ) -> None:  # fmt: skip
        """`on_cancel` is told when the task that waits is cancelled, at most once."""
        self.kind = kind
        self.number = number
        self.frame = frame
        self.began = began
        self.deadline = deadline
        self.course = course
        self.answer: m.Answered | None = None
        self.is_begun = False
        self.is_done = False
        self.is_sent = False
        """Some of its frame may have left."""
        self.task: trio.lowlevel.Task | None = None
        self._on_cancel = on_cancel

    async def wait(self) -> None:
        """Until `end`. Not interrupted by cancellation, which is delivered at the next checkpoint."""
        if not self.is_done:
            self.task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._not_now)

    def end(self) -> None:
        """It is answered, or given up."""
        self.is_done = True
        if self.task is not None:
            trio.lowlevel.reschedule(self.task)

    def _not_now(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._on_cancel(self)
        return trio.lowlevel.Abort.FAILED
