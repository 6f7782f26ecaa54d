"""A process that fronts talk to and calls can do without: started once it is wanted, kept alive, connected to every
front. A successor gets new channels; messages that the one before it had not answered are lost.
"""

import socket
from collections.abc import Callable
from typing import Any, ClassVar

import trio

from ipc.channel.protocol_states import Table
from ipc.messages.message import Message
from supervisor.children.backoff import Backoff
from supervisor.children.children import Child
from supervisor.children.control import Control
from supervisor.children.fd_passing import handing_over
from supervisor.keepers.fronts import FrontLife
from supervisor.logs import log
from supervisor.state import SupervisorState

READY_SECONDS = 60.0
"""From start to the message that it is ready."""


class SideProcessKeeper:
    """Holds one such process alive. A subclass names its role and the messages that it starts with."""

    role: ClassVar[str]
    hears: ClassVar[Any]
    """The union of its messages to the supervisor."""
    table: ClassVar[Table]
    """The session table of these messages; `starting` is the first state."""
    ready_line: ClassVar[str]
    """The log line once it is ready."""

    def __init__(self, state: SupervisorState, fronts: Callable[[], list[FrontLife]]) -> None:
        """`fronts()` are those that live at the moment."""
        self._state = state
        self._fronts = fronts
        self._control: Control[Message] | None = None
        self._child: Child | None = None
        self._is_stopping = self._is_ready = False
        self._leaves: Child | None = None
        """Ended for a successor with other settings, or for good."""

    @property
    def is_wanted(self) -> bool:
        """It is to live."""
        raise NotImplementedError

    def program(self) -> tuple[str, ...]:
        """Its module and arguments."""
        raise NotImplementedError

    def first_message(self) -> Message:
        """The message that it starts with."""
        raise NotImplementedError

    def tying(self, front_id: str, pid: int) -> tuple[Message, Message]:
        """The messages with the two ends of a channel: to this process, and to the front."""
        raise NotImplementedError

    async def run(self) -> None:
        """Life after life, until the gateway stops."""
        backoff = Backoff()
        while True:
            await self._state.condition.until(lambda: self.is_wanted or self._is_stopping)
            if self._is_stopping:
                return
            child = await self._live()
            had_served, self._is_ready = self._is_ready, False
            self._control = self._child = None
            self._state.condition.notify_all()
            if self._is_stopping:
                return
            if self._leaves is child:
                self._state.standings.stopped(self.role)
                backoff = Backoff()
            elif not await self._state.after_end(self.role, child, backoff, had_served=had_served):
                return

    def attach(self, front: FrontLife) -> None:
        """Tie a front to the process of now, if there is one. Raises OSError."""
        if not self._is_ready or self._control is None or self._child is None or self._child.status is not None:
            return
        ours, theirs = socket.socketpair()
        to_process, to_front = self.tying(front.front_id, self._child.pid)
        self._control.post(to_process, (theirs.detach(),))
        front.post(to_front, (ours.detach(),))

    def kill(self, pid: int) -> bool:
        """End the process for a front that is done with it. False for a pid that is not the current one's: that process
        has been replaced already."""
        if self._child is None or self._child.pid != pid:
            return False
        self._child.kill()
        return True

    async def stop(self) -> None:
        """End it, for good: the calls that could ask it have ended."""
        self._is_stopping = True
        self._state.condition.notify_all()
        await self._end()

    async def _end(self) -> None:
        child = self._leaves = self._child
        if child is None:
            return
        child.kill()
        await child.wait()
        await self._state.condition.until(lambda: self._child is not child)

    async def _live(self) -> Child:
        state = self._state
        child, pair = state.children.start(self.role, self.program())
        state.standings.started(self.role, child.pid)
        if pair is None:
            return child
        control: Control[Message] = Control(self.hears, self.table, pair)
        self._control, self._child = control, child
        control.post(self.first_message())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.expect_up, child, lambda: self._is_ready, READY_SECONDS)
            await control.serve_until_end(child, self._hear)
            nursery.cancel_scope.cancel()
        return child

    def _hear(self, _: Message) -> None:
        """It is ready: the table lets nothing else come. Only now do fronts ask: while it starts it answers nothing,
        and a question's time would be up."""
        self._is_ready = True
        assert self._child is not None
        with handing_over(self._child):
            for front in self._fronts():
                self.attach(front)
        log.info(self.ready_line, pid=self._child.pid)
        self._state.condition.notify_all()
