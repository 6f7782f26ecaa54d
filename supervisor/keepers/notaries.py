"""The notary process: held alive, and tied to every front by a channel of their own.

A front gets its channel when it starts, and another one with each life of the notary; what the one before did not
answer is asked again there. The notary leaves last of all, so that fronts can record their end.
"""

import os
import socket
from collections.abc import Callable

import trio

from ipc.backends.webhooks import without_addresses
from ipc.messages.control import AttachNotary, FollowSettings, SettingsFollowed
from ipc.messages.message import Message
from ipc.messages.notarising import (
    AttachFront,
    FrontDetached,
    NotaryReady,
    NotaryToSupervisor,
    StartNotary,
    StopNotary,
    WorkerBroke,
)
from ipc.messages.pinging import Ping, Pong
from ipc.messages.sealing import CutLedger, LedgerCut
from ipc.protocols.notary import NOTARY_TO_SUPERVISOR
from supervisor.children.backoff import Backoff, reason_of
from supervisor.children.children import Child
from supervisor.children.control import Control
from supervisor.children.fd_passing import handing_over
from supervisor.keepers.fronts import FrontLife
from supervisor.logs import log
from supervisor.state import SupervisorState
from supervisor.systemd.watchdog import SignOfLife

DETACHED_SECONDS = 5.0
"""For a front to exit once its channel with the notary has ended, as it does last of all when it leaves."""
READY_SECONDS = 60.0
"""From start to NotaryReady; a database that was not closed may have to be read through first."""
LEAVE_SECONDS = 5.0
"""For what has arrived to be written, once no front is left."""

CUT_SECONDS = 30.0
"""For the unit that cuts the ledger, behind those that wait."""

HURRIED_SECONDS = 0.5
"""The same after a second signal."""


def _nothing(*_: object) -> None:
    """No listener is set yet."""


class NotaryKeeper:
    """Holds one notary alive."""

    def __init__(self, state: SupervisorState, fronts: Callable[[], list[FrontLife]]) -> None:
        """`fronts()` are those that live at the moment. `on_start` and `on_broken` are set before `run`."""
        self.on_start: Callable[[], None] = _nothing
        """Sends a fresh notary its first messages, before a front is connected to it. May raise OSError."""
        self.on_broken: Callable[[WorkerBroke], None] = _nothing
        """A worker broke its word."""
        self.on_tied: Callable[[], None] = _nothing
        """Fronts are tied to a fresh notary: it is time for the deliverer. May raise OSError."""
        self.child_of: Callable[[str], Child | None] = _nothing
        """Finds the process behind an ended channel that is not a front's."""
        self.pulse = SignOfLife()
        self._state = state
        self._fronts = fronts
        self._control: Control[Message] | None = None
        self._child: Child | None = None
        self._is_ready = False
        self._is_stopping = False
        self._followed = ""
        self._cuts_asked = 0
        self._cuts: dict[str, LedgerCut | None] = {}
        """Questions that wait for an answer, by request id, and their answers."""

    async def run(self) -> None:
        """Life after life, until the gateway stops."""
        backoff = Backoff()
        while True:
            child = await self._live()
            had_served, self._is_ready = self._is_ready, False
            self._control = self._child = None
            self.pulse.settle()
            self._state.condition.notify_all()
            if await self._state.after_end("notary", child, backoff, had_served=had_served):
                continue
            if not await self._is_missed(child, backoff, had_served=had_served):
                return

    async def _is_missed(self, child: Child, backoff: Backoff, *, had_served: bool) -> bool:
        """True, after the back-off: the gateway stops, and fronts are left that record their end."""
        if self._state.halted is not None or not self._fronts():
            return False
        assert child.status is not None
        delay = backoff.delay(trio.current_time(), had_served=had_served)
        log.warning("notary ended", reason=reason_of(child.status), pid=child.pid, restart_in=delay)
        with trio.move_on_after(delay):
            await self._state.condition.until(lambda: not self._fronts())
        return bool(self._fronts())

    @property
    def pid(self) -> int | None:
        """The pid of the present notary; None while none runs."""
        return self._child.pid if self._child is not None and self._child.status is None else None

    def attach(self, front: FrontLife) -> None:
        """Tie a front to the notary of now; without one nothing happens, since the next one is tied to all. Raises
        OSError."""
        if self._control is None or (pid := self.pid) is None:
            return
        ours, theirs = socket.socketpair()
        self._control.post(AttachFront(front.front_id), (theirs.detach(),))
        front.post(AttachNotary(pid=pid), (ours.detach(),))

    def tell(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Post a message to the present notary, with descriptors that this call takes over. Without a notary the
        message is dropped: the next notary gets all of them anew."""
        if self._control is not None:
            self._control.post(message, fds)
        else:
            for fd in fds:
                os.close(fd)

    async def follow(self, message: FollowSettings, seconds: float) -> None:
        """Return once the present notary has applied the settings, or has ended: the next notary starts with the new
        settings. A notary that does not confirm in time is killed."""
        child = self._child
        if child is None or self._control is None:
            return
        self._control.post(message)
        with trio.move_on_after(seconds):
            await self._state.condition.until(
                lambda: self._followed == message.request_id or self._child is not child
            )  # fmt: skip
            return
        log.error("notary is killed: it did not apply the reloaded settings", pid=child.pid)
        child.kill()
        await child.wait()

    async def cut(self, sealed: str) -> LedgerCut:
        """Have the present notary cut the ledger at the end of a segment (see CutLedger); its answer, or that there is
        none."""
        child = self._child
        if child is None or self._control is None or not self._is_ready or self._is_stopping:
            return LedgerCut("", problem="the notary does not serve now")
        self._cuts_asked += 1
        request_id = f"cut-{self._cuts_asked}"
        self._cuts[request_id] = None
        try:
            self._control.post(CutLedger(request_id, sealed))
            with trio.move_on_after(CUT_SECONDS):
                await self._state.condition.until(
                    lambda: self._child is not child or self._cuts[request_id] is not None
                )  # fmt: skip
        finally:
            answer = self._cuts.pop(request_id)
        return answer or LedgerCut(request_id, problem="the notary has not answered, and may have cut the ledger")

    def ping(self) -> None:
        """Ask whether it is alive, unless an answer is owed or none can come."""
        if self._control is not None and self._is_ready and not self._is_stopping and not self.pulse.is_owed:
            self.pulse.expect()
            self._control.post(Ping())

    async def stop(self) -> None:
        """Have the notary finish and leave; kill it at its deadline, or at once if the gateway must end now."""
        child = self._child
        if child is None or self._control is None:
            return
        self._is_stopping = True
        self.pulse.settle()
        self._control.post(StopNotary())
        is_hurried = self._state.patience.cancel_called
        with trio.move_on_after(HURRIED_SECONDS if is_hurried else LEAVE_SECONDS):
            await child.wait()
        child.kill()
        await child.wait()

    async def _live(self) -> Child:
        state = self._state
        child, pair = state.children.start("notary", state.programs.notary)
        state.standings.started(child.name, child.pid)
        if pair is None:
            return child
        control: Control[Message] = Control(NotaryToSupervisor, NOTARY_TO_SUPERVISOR, pair)
        self._control, self._child = control, child
        control.post(StartNotary(without_addresses(state.settings)))
        with handing_over(child):
            self.on_start()
            for front in self._fronts():
                self.attach(front)
            self.on_tied()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.expect_up, child, lambda: self._is_ready, READY_SECONDS)
            await control.serve_until_end(child, lambda message: self._hear(message, nursery))
            nursery.cancel_scope.cancel()
        return child

    def _hear(self, message: Message, nursery: trio.Nursery) -> None:
        match message:
            case FrontDetached():
                nursery.start_soon(self._end_detached, message.front_id)
            case WorkerBroke():
                self.on_broken(message)
            case SettingsFollowed():
                self._followed = message.request_id
                self._state.condition.notify_all()
            case LedgerCut():
                if message.request_id in self._cuts:
                    self._cuts[message.request_id] = message
                self._state.condition.notify_all()
            case Pong():
                self.pulse.settle()
            case NotaryReady():
                self._is_ready = True
                self._state.condition.notify_all()

    async def _end_detached(self, front_id: str) -> None:
        """A front without a notary refuses every call, the deliverer sends nothing, and nothing ties either again while
        this notary lives."""
        fronts = {one.front_id: one.child for one in self._fronts()}
        child = fronts[front_id] if front_id in fronts else self.child_of(front_id)
        if child is None:
            return
        with trio.move_on_after(DETACHED_SECONDS):
            await child.wait()
            return
        log.error(f"{child.name} is killed: its channel with the notary has ended", pid=child.pid)
        child.kill()
