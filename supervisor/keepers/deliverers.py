"""The deliverer of webhooks: started if an enabled endpoint is configured, kept alive, connected to the notary.

A reload that changes endpoints replaces it, since its walls depend on its endpoints: the old process finishes its
requests, within limits, and ends before the reload is answered. It stops after all fronts and before the notary, so
that the results of its last attempts reach the ledger. Deliveries that it had claimed when it was killed are sent
again.
"""

import secrets
import socket
from collections.abc import Callable

import msgspec
import trio

from ipc.backends.webhooks import alone
from ipc.messages.control import AttachNotary, DelivererStarted, Stop, TryWebhook, WebhookTried
from ipc.messages.delivering import DelivererReady, DelivererToSupervisor, EndpointGone, StartDeliverer
from ipc.messages.message import Message
from ipc.messages.notarising import AttachDeliverer
from ipc.process.roles import DELIVERER
from ipc.protocols.deliverer import DELIVERER_TO_SUPERVISOR
from ipc.settings import Settings, WebhookSettings
from supervisor.children.backoff import Backoff
from supervisor.children.children import Child
from supervisor.children.control import Control
from supervisor.children.fd_passing import handing_over
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.notaries import NotaryKeeper
from supervisor.logs import log
from supervisor.state import SupervisorState

READY_SECONDS = 60.0
"""From start to DelivererReady."""
FINISH_SECONDS = 2.0
"""The time for open requests before it leaves; a request that is cut is sent again."""
LEAVE_SECONDS = 1.0
"""For its exit after that."""
MAX_TRIES = 64
"""The most attempts of operators, over all fronts, that wait for an answer."""


class DelivererKeeper:
    """Holds one deliverer alive while there is anything to deliver to."""

    def __init__(self, state: SupervisorState, notary: NotaryKeeper, fronts: Callable[[], list[FrontLife]]) -> None:
        """`fronts()` are those that live at the moment."""
        self._state = state
        self._notary = notary
        self._fronts = fronts
        self._control: Control[Message] | None = None
        self._child: Child | None = None
        self._is_ready = False
        self._is_stopping = False
        self._id = ""
        self._rows: tuple[WebhookSettings, ...] = ()
        """The endpoints that it was started with."""
        self._gone: set[str] = set()
        """Endpoints that have answered 410 since the last reload."""
        self._leaves: Child | None = None
        """Asked to leave, for a successor with other endpoints or for good."""
        self._asked: dict[str, FrontLife] = {}
        """Attempts of operators that wait for their end -> who asked."""

    @property
    def is_wanted(self) -> bool:
        """There is an endpoint to deliver to."""
        return any(not row.disable for row in self._state.settings.webhooks)

    @property
    def is_settled(self) -> bool:
        """It serves, or is not wanted."""
        return self._is_ready or not self.is_wanted

    async def run(self) -> None:
        """Life after life, until the gateway stops."""
        backoff, has_served = Backoff(), False
        while True:
            await self._state.condition.until(lambda: self.is_wanted or self._is_stopping)
            if self._is_stopping:
                return
            child = await self._live(is_successor=has_served or not self._state.lifecycle.is_starting)
            had_served, self._is_ready = self._is_ready, False
            has_served = has_served or had_served
            self._control = self._child = None
            self._fail_tries()
            self._state.condition.notify_all()
            if self._is_stopping:
                return
            if self._leaves is child:
                self._state.standings.stopped(DELIVERER)
                backoff = Backoff()
            elif not await self._state.after_end(DELIVERER, child, backoff, had_served=had_served):
                return

    def attach(self) -> None:
        """Tie it to the notary of now; without one nothing happens, since the next one is tied to all. Raises
        OSError."""
        if self._control is None or (pid := self._notary.pid) is None:
            return
        ours, theirs = socket.socketpair()
        self._notary.tell(AttachDeliverer(self._id), (theirs.detach(),))
        self._control.post(AttachNotary(pid=pid), (ours.detach(),))

    def try_webhook(self, front: FrontLife, message: TryWebhook) -> None:
        """Hand an operator's attempt on; where there is no deliverer, say so at once."""
        if self._control is None or not self._is_ready or self._leaves is self._child or len(self._asked) >= MAX_TRIES:
            front.post(_failed(message.request_id))
            return
        self._asked[message.request_id] = front
        self._control.post(message)

    def child_of(self, deliverer_id: str) -> Child | None:
        """The process with this id; None for an earlier process."""
        return self._child if deliverer_id == self._id else None

    async def follow(self) -> None:
        """A reload is in force: returns once no process has other endpoints than it says."""
        if self._rows != self._state.settings.webhooks or self._gone:
            self._gone.clear()
            await self._end()
            self._state.condition.notify_all()

    async def stop(self) -> None:
        """Have it finish and leave, for good."""
        self._is_stopping = True
        self._state.condition.notify_all()
        await self._end()

    async def _end(self) -> None:
        child, control = self._child, self._control
        if child is None or control is None:
            return
        self._leaves = child
        seconds = 0.0 if self._state.patience.cancel_called or self._state.halted is not None else FINISH_SECONDS
        control.post(Stop(seconds))
        with trio.move_on_after(seconds + LEAVE_SECONDS):
            await child.wait()
        child.kill()
        await child.wait()
        await self._state.condition.until(lambda: self._child is not child)

    async def _live(self, *, is_successor: bool) -> Child:
        state = self._state
        child, pair = state.children.start(DELIVERER, state.programs.deliverer)
        state.standings.started(DELIVERER, child.pid)
        if pair is None:
            return child
        control: Control[Message] = Control(DelivererToSupervisor, DELIVERER_TO_SUPERVISOR, pair)
        self._control, self._child = control, child
        self._id, self._rows = f"{DELIVERER}-{secrets.token_hex(4)}", state.settings.webhooks
        control.post(StartDeliverer(self._id, self._without_gone(alone(state.settings)), is_successor))
        with handing_over(child):
            self.attach()
        for front in self._fronts():
            self.tell(front)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.expect_up, child, lambda: self._is_ready, READY_SECONDS)
            await control.serve_until_end(child, self._hear)
            nursery.cancel_scope.cancel()
        return child

    def tell(self, front: FrontLife) -> None:
        """A front began to live, a deliverer did, or an endpoint is gone."""
        if self._child is not None and self._child.status is None:
            front.post(DelivererStarted(self._child.pid, tuple(sorted(self._gone))))

    def _without_gone(self, settings: Settings) -> Settings:
        """A deliverer that replaces a crashed one skips endpoints that answered 410."""
        rows = (
            msgspec.structs.replace(row, disable=True) if row.name in self._gone else row for row in settings.webhooks
        )
        return msgspec.structs.replace(settings, webhooks=tuple(rows))

    def _hear(self, message: Message) -> None:
        match message:
            case DelivererReady():
                self._is_ready = True
                log.info("deliverer is ready", pid=self._child.pid if self._child else None)
                self._state.condition.notify_all()
            case EndpointGone(name):
                self._note_gone(name)
            case WebhookTried():
                front = self._asked.pop(message.request_id, None)
                if front is not None:
                    front.post(message)

    def _note_gone(self, name: str) -> None:
        """SECURITY: the deliverer talks to strangers' servers. A known endpoint's name is kept and passed on, once; any
        other name is dropped, since a flood would fill the fronts' queues, and a front with a full queue is killed."""
        if name in self._gone or all(row.name != name for row in self._rows):
            return
        self._gone.add(name)
        for one in self._fronts():
            self.tell(one)

    def _fail_tries(self) -> None:
        for request_id, front in self._asked.items():
            front.post(_failed(request_id))
        self._asked.clear()


def _failed(request_id: str) -> WebhookTried:
    return WebhookTried(request_id, "failed", None, "the process that delivers is not there")
