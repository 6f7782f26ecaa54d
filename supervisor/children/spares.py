"""Processes that are started before they are needed: they have imported what they are made of, and wait for their
first message, as every process of their kind does.

So a front, and with it its policy process, is replaced in the time that it takes to open the door, and not in that of
fresh interpreters (most of a second of processor time). One spare front for all fronts, a spare policy process for
each; started once the gateway has served for a little, so that they take nothing from a start or from the first calls.
A spare holds no listening socket, no setting and no channel but its own, and has the code that this gateway was started
with, whatever an update has put on the disk since.
"""

from collections.abc import Callable

import msgspec
import trio

from supervisor.children.backoff import Backoff, reason_of
from supervisor.children.children import Child, Children, Pair
from supervisor.condition import Condition
from supervisor.logs import log


class Spare(msgspec.Struct, frozen=True):
    """A process, and both ends of its control channel, ours first; the process has the other one."""

    child: Child
    pair: Pair


class Spares:
    """Keeps one process ready."""

    def __init__(
        self, children: Children, condition: Condition, name: str, program: tuple[str, ...], option: str,
        after_seconds: float,
    ) -> None:  # fmt: skip
        """`program` is what is started, its channel given by `option`; the first one so many seconds after all is
        calm."""
        self._children = children
        self._condition = condition
        self._name = f"spare {name}"
        self._program = program
        self._option = option
        self._after_seconds = after_seconds
        self._spare: Spare | None = None

    def take(self) -> Spare | None:
        """Hand the spare over to the caller; None if no spare lives."""
        spare, self._spare = self._spare, None
        self._condition.notify_all()
        if spare is None or spare.child.status is None:
            return spare
        spare.pair[0].close()
        return None

    async def run(self, is_calm: Callable[[], bool]) -> None:
        """Start a spare whenever none lives and the gateway is calm. A cancelled run ends its spare."""
        backoff = Backoff(step=1.0, ceiling=60.0)
        try:
            await self._condition.until(is_calm)
            await trio.sleep(self._after_seconds)
            while True:
                await self._condition.until(is_calm)
                child, pair = self._children.start(self._name, self._program, self._option)
                spare = self._spare = None if pair is None else Spare(child, pair)
                if spare is not None:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._note_end, child)
                        await self._until_gone(spare)
                        nursery.cancel_scope.cancel()
                if self._spare is spare and child.status is not None:
                    self._spare = None
                    if spare is not None:
                        spare.pair[0].close()
                    delay = backoff.delay(trio.current_time(), had_served=False)
                    log.warning(f"{self._name} ended", reason=reason_of(child.status), restart_in=delay)
                    await trio.sleep(delay)
        finally:
            if self._spare is not None:
                self._spare.child.kill()
                self._spare.pair[0].close()

    async def _until_gone(self, spare: Spare) -> None:
        await self._condition.until(lambda: self._spare is not spare or spare.child.status is not None)

    async def _note_end(self, child: Child) -> None:
        await child.wait()
        self._condition.notify_all()
