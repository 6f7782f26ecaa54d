"""The policy process of one front: started beside it, replaced when it ends, killed when the front asks or ends."""

import signal
import socket
from collections.abc import Callable

import trio

from ipc.messages.control import AttachPolicy, ReplacePolicy
from ipc.messages.message import Message
from ipc.process.exits import Exit
from supervisor.children.backoff import Backoff
from supervisor.children.children import Child
from supervisor.logs import log
from supervisor.state import SupervisorState

SERVED_AFTER_SECONDS = 2.0
"""The supervisor does not see verdicts: a policy process that lived this long has worked, and so has one that ended
itself because of an evaluation."""
_OF_A_QUESTION = (-signal.SIGPROF, Exit.MEMORY)
"""An evaluation passed its deadline, or took too much memory."""

Post = Callable[[Message, tuple[int, ...]], None]


class PolicyKeeper:
    """Holds one policy process alive and its channel at the front."""

    def __init__(self, state: SupervisorState, number: int) -> None:
        self._state = state
        self._number = number
        self._name = f"policy {number}"
        self._current: Child | None = None
        self._was_asked = False

    async def run(self, post: Post) -> None:
        """Start, attach through `post`, wait for the end, again. Cancelled, the process is killed."""
        backoff = Backoff()
        while True:
            self._was_asked = False
            child, fronts_end = self._started()
            self._current = child
            self._state.standings.started(self._name, child.pid)
            if fronts_end is not None:
                with fronts_end:
                    if child.status is None:
                        post(AttachPolicy(pid=child.pid), (fronts_end.detach(),))
            is_over = False
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._follow_service, child)
                    await child.wait()
                    nursery.cancel_scope.cancel()
                is_over = True
            finally:
                child.kill()
                if not is_over:
                    self._state.standings.stopped(self._name)
            had_served = self._was_asked or child.status in _OF_A_QUESTION or child.age > SERVED_AFTER_SECONDS
            if not await self._state.after_end("policy", child, backoff, had_served=had_served):
                return

    def _started(self) -> tuple[Child, socket.socket | None]:
        """Take the spare process, or start a new one. Return it with the front's end of its channel, if it has one."""
        spares = self._state.policy_spares.get(self._number)
        spare = None if spares is None else spares.take()
        if spare is not None:
            spare.child.name = self._name
            return spare.child, spare.pair[0]
        child, pair = self._state.children.start(
            self._name, self._state.policy_program(self._number), "channel-fd"
        )  # fmt: skip
        return child, None if pair is None else pair[0]

    async def _follow_service(self, child: Child) -> None:
        await trio.sleep(SERVED_AFTER_SECONDS)
        await self._state.follow_service(child)

    def replace(self, message: ReplacePolicy) -> None:
        """The front is done with this process. A pid that is not the current one's has been replaced already."""
        if self._current is not None and self._current.pid == message.pid:
            log.warning(f"{self._name} is replaced", pid=message.pid, reason=message.reason)
            self._was_asked = True
            self._current.kill()
