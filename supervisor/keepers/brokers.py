"""The broker: started once a front needs one, kept alive, connected to every front.

A reload that changes `[egress]` replaces it, since it gets its networks at its start. Its tokens are in memory alone:
its successor fetches new ones, and the questions that it had not answered fail.
"""

import socket
from collections.abc import Callable

import trio

from ipc.channel.protocol_states import BROKER_TO_SUPERVISOR
from ipc.messages.brokering import AttachAsker, AttachBroker, BrokerToSupervisor, ReplaceBroker, StartBroker
from ipc.messages.message import Message
from ipc.network.own_servers import own_servers
from ipc.process.roles import BROKER
from ipc.settings import EgressSettings
from supervisor.children.backoff import Backoff
from supervisor.children.children import Child
from supervisor.children.control import Control
from supervisor.children.fd_passing import handing_over
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.network_files import NetworkFiles
from supervisor.logs import log
from supervisor.state import SupervisorState

READY_SECONDS = 60.0
"""From start to BrokerReady."""


class BrokerKeeper:
    """Holds one broker alive once it is needed."""

    def __init__(self, state: SupervisorState, fronts: Callable[[], list[FrontLife]]) -> None:
        """`fronts()` are those that live at the moment."""
        self._state = state
        self._fronts = fronts
        self._control: Control[Message] | None = None
        self._child: Child | None = None
        self._is_needed = self._is_stopping = self._is_ready = False
        self._egress = EgressSettings()
        """The settings that it was started with."""
        self._files = NetworkFiles(())
        """The files of TLS that it has read."""
        self._leaves: Child | None = None
        """Ended for a successor with other settings, or for good."""

    def need(self) -> None:
        """A front has an action that needs it."""
        self._is_needed = True
        self._state.condition.notify_all()

    async def run(self) -> None:
        """Life after life, until the gateway stops."""
        backoff = Backoff()
        while True:
            await self._state.condition.until(lambda: self._is_needed or self._is_stopping)
            if self._is_stopping:
                return
            child = await self._live()
            had_served, self._is_ready = self._is_ready, False
            self._control = self._child = None
            self._state.condition.notify_all()
            if self._is_stopping:
                return
            if self._leaves is child:
                self._state.standings.stopped(BROKER)
                backoff = Backoff()
            elif not await self._state.after_end(BROKER, child, backoff, had_served=had_served):
                return

    def attach(self, front: FrontLife) -> None:
        """Tie a front to the broker of now, if there is one. Raises OSError."""
        if not self._is_ready or self._control is None or self._child is None or self._child.status is not None:
            return
        ours, theirs = socket.socketpair()
        self._control.post(AttachAsker(front.front_id), (theirs.detach(),))
        front.post(AttachBroker(self._child.pid), (ours.detach(),))

    def replace(self, message: ReplaceBroker) -> None:
        """A front is done with this process. A pid that is not the current one's has been replaced already."""
        if self._child is not None and self._child.pid == message.pid:
            log.warning("broker is replaced", pid=message.pid, reason=message.reason)
            self._child.kill()

    async def follow(self) -> None:
        """A reload is in force: returns once no process has other networks than it says."""
        egress = self._state.settings.egress
        has_other_files = self._files.update(egress.networks)
        if has_other_files or self._egress != egress:
            await self._end()

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
        child, pair = state.children.start(BROKER, state.programs.broker)
        state.standings.started(BROKER, child.pid)
        if pair is None:
            return child
        control: Control[Message] = Control(BrokerToSupervisor, BROKER_TO_SUPERVISOR, "starting", pair)
        self._control, self._child, self._egress = control, child, state.settings.egress
        self._files.update(self._egress.networks)
        control.post(StartBroker(self._egress, state.settings.walls, own_servers(state.settings)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.expect_up, child, lambda: self._is_ready, READY_SECONDS)
            await control.serve_until_end(child, self._hear)
            nursery.cancel_scope.cancel()
        return child

    def _hear(self, _: Message) -> None:
        """BrokerReady: the table lets nothing else come. Only now do fronts ask: while it starts it answers nothing,
        and a question's time would be up."""
        self._is_ready = True
        assert self._child is not None
        with handing_over(self._child):
            for front in self._fronts():
                self.attach(front)
        log.info("broker is ready", pid=self._child.pid if self._child else None)
        self._state.condition.notify_all()
