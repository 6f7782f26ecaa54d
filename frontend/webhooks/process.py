"""One deliverer from its first message to its last: walls, secrets, the channel to the notary, the end.

Guarantees that it says it is ready only once every endpoint can be used and every wall stands, that a stop ends it in
the time it is given, and that every end has its exit code of ipc/process/exits.py.
"""

import os
import socket
from functools import partial

import trio

from frontend.clock import FrontClock
from frontend.notary.client import NotaryClient
from frontend.supervised import run_supervised
from frontend.telemetry.logs import log
from frontend.webhooks.deliverer import Deliverer
from frontend.webhooks.delivery import open_post
from frontend.webhooks.endpoints import WebhookTarget, open_endpoints
from frontend.webhooks.outbox import DELIVERERS, Outbox
from frontend.webhooks.walls import NICENESS, walls
from ipc.backends.webhooks import SecretUnfit
from ipc.channel.fds import take
from ipc.channel.nonblocking import TrioChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import AttachNotary, Stop, TryWebhook
from ipc.messages.delivering import DelivererReady, EndpointGone, StartDeliverer, SupervisorToDeliverer
from ipc.messages.message import Message
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from ipc.process.process_speed import release_collector
from ipc.protocols.deliverer import SUPERVISOR_TO_DELIVERER
from ipc.walls.confining import WallRefused, enter

Channel = TrioChannel[Message]


def run(sock: socket.socket) -> Exit:
    """Serve the supervisor at the other end; return why it ended."""
    return run_supervised("deliverer", partial(_serve, sock))


async def _serve(sock: socket.socket) -> Exit:
    control: Channel = TrioChannel(
        sock, SupervisorToDeliverer, table=SUPERVISOR_TO_DELIVERER, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME, carries_fds=True,
    )  # fmt: skip
    start = await control.receive()
    assert isinstance(start, StartDeliverer), "the session table lets nothing else come first"
    os.nice(NICENESS)
    try:
        enter(walls(start.settings), start.settings.walls)
    except (WallRefused, OSError, ValueError) as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    try:
        endpoints = open_endpoints(start.settings.webhooks, is_successor=start.is_successor)
    except PrivateFileError as error:
        log.error("the deliverer can't start", cause=str(error))
        return error.exit_code
    except SecretUnfit as error:
        log.error("the deliverer can't start", cause=f"the secret of a webhook {error}")
        return Exit.CONFIG
    return await _deliver(control, start, endpoints)


async def _deliver(control: Channel, start: StartDeliverer, endpoints: tuple[WebhookTarget, ...]) -> Exit:
    settings, clock, client = start.settings, FrontClock(0.0), NotaryClient(dialect=DELIVERERS)
    post = open_post(settings.version, settings.egress.unsafe_resolve)
    async with trio.open_nursery() as nursery:

        def on_gone(name: str) -> None:
            nursery.start_soon(control.send, EndpointGone(name))

        deliverer = Deliverer(endpoints, settings.version, post, clock, Outbox(client), on_gone)
        client.on_newest, client.on_woken = clock.follow, deliverer.wake
        await nursery.start(client.run)
        process = Process(control, client, deliverer, nursery)
        nursery.start_soon(process.hear)
        await control.send(DelivererReady())
        release_collector()
        await process.until_ended()
        nursery.cancel_scope.cancel()
    return Exit.OK


class Process:
    """Hears the supervisor while the deliverer is at work."""

    def __init__(self, control: Channel, client: NotaryClient, deliverer: Deliverer, nursery: trio.Nursery) -> None:
        self._control = control
        self._client = client
        self._deliverer = deliverer
        self._nursery = nursery
        self._work = trio.CancelScope()

    async def until_ended(self) -> None:
        """Deliver until told to stop, and then until what is under way has ended, or the time for that is over."""
        with self._work:
            await self._deliverer.run()

    async def hear(self) -> None:
        """Until cancelled. Raises ChannelClosed, OSError, FrameError, ProtocolError."""
        while True:
            match await self._control.receive():
                case AttachNotary():
                    (descriptor,) = take(self._control.fds)
                    self._client.attach(socket.socket(fileno=descriptor))
                case TryWebhook() as asked:
                    self._nursery.start_soon(self._try, asked)
                case Stop(seconds):
                    self._deliverer.end()
                    self._nursery.start_soon(self._cut_after, seconds)

    async def _cut_after(self, seconds: float) -> None:
        """Tasks that wait for the notary then get no answer: only this interrupts them."""
        await trio.sleep(seconds)
        self._work.cancel()
        self._client.close()

    async def _try(self, asked: TryWebhook) -> None:
        await self._control.send(await self._deliverer.tried(asked))
