"""One broker from its first message to its last: walls, the channels of fronts, their questions.

Guarantees that questions are bounded, in all and for each principal, that each has an answer within its time, and that
a front which breaks the protocol loses its own channel alone. Every end has its exit code of ipc/process/exits.py.
"""

import socket
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from broker.connecting import Servers
from broker.issuer_keys import IssuerKeys, NoKeys, fetch_keys
from broker.token_server import FetchedToken, NoToken, fetch_token
from broker.tokens import Tokens
from broker.walls import walls
from frontend.supervised import run_supervised
from frontend.telemetry.logs import log
from ipc.channel.blocking import ChannelClosed
from ipc.channel.fds import take
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_BROKER_FRAME, MAX_CONTROL_FRAME
from ipc.messages.brokering import (
    AskKeys,
    AskToken,
    AttachAsker,
    BrokerReady,
    BrokerRefused,
    FrontToBroker,
    StartBroker,
    SupervisorToBroker,
    TokenGiven,
)
from ipc.messages.message import Message
from ipc.process.exits import Exit
from ipc.process.process_speed import release_collector
from ipc.protocols.broker import FRONT_TO_BROKER, SUPERVISOR_TO_BROKER
from ipc.walls.confining import WallRefused, enter

MAX_QUESTIONS: Final = 512
"""Over all fronts."""
MAX_OF_A_PRINCIPAL: Final = 32
SAY_SECONDS: Final = 10.0
"""For one answer to leave."""

Channel = TrioChannel[Message]


def run(sock: socket.socket) -> Exit:
    """Serve the supervisor at the other end; return why it ended."""
    return run_supervised("broker", partial(_serve, sock))


async def _serve(sock: socket.socket) -> Exit:
    control: Channel = TrioChannel(
        sock, SupervisorToBroker, table=SUPERVISOR_TO_BROKER, cap_in=MAX_CONTROL_FRAME,
        cap_out=MAX_CONTROL_FRAME, carries_fds=True,
    )  # fmt: skip
    start = await control.receive()
    assert isinstance(start, StartBroker), "the session table lets nothing else come first"
    servers = Servers(start.egress, start.own_servers)
    try:
        enter(walls(), start.walls)
    except WallRefused as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    async with trio.open_nursery() as nursery:

        async def fetch(asked: AskToken, seconds: float) -> FetchedToken:
            return await fetch_token(servers, asked.way, asked.client_secret, seconds)

        desk = Desk(Tokens(fetch, nursery), IssuerKeys(partial(fetch_keys, servers), nursery))
        await control.send(BrokerReady())
        release_collector()
        while True:
            attached = await control.receive()
            assert isinstance(attached, AttachAsker), "the session table lets nothing else come"
            (descriptor,) = take(control.fds)
            nursery.start_soon(desk.serve, socket.socket(fileno=descriptor), attached.front_id)


class Desk:
    """Answers the questions of all fronts."""

    def __init__(self, tokens: Tokens, keys: IssuerKeys) -> None:
        self._tokens = tokens
        self._keys = keys
        self._open: Counter[str] = Counter()
        """By principal."""

    async def serve(self, sock: socket.socket, front_id: str) -> None:
        """Answer one front until its channel ends. Raises nothing."""
        channel: Channel = TrioChannel(
            sock, FrontToBroker, table=FRONT_TO_BROKER, cap_in=MAX_BROKER_FRAME, cap_out=MAX_BROKER_FRAME
        )
        try:
            async with trio.open_nursery() as nursery:
                try:
                    while True:
                        asked = await channel.receive()
                        assert isinstance(asked, AskToken | AskKeys), "the union has nothing else"
                        self._take(channel, asked, nursery)
                except (ChannelClosed, OSError):
                    pass
                except (FrameError, ProtocolError) as error:
                    log.error("a front broke the protocol", front=front_id, cause=str(error))
                nursery.cancel_scope.cancel()
        finally:
            channel.close()

    def _take(self, channel: Channel, asked: AskToken | AskKeys, nursery: trio.Nursery) -> None:
        reason = None
        if self._open.total() >= MAX_QUESTIONS:
            reason = f"{MAX_QUESTIONS} questions are open"
        elif self._open[asked.principal] >= MAX_OF_A_PRINCIPAL:
            reason = f"{MAX_OF_A_PRINCIPAL} questions of this principal are open"
        if reason is not None:
            nursery.start_soon(_say, channel, BrokerRefused(asked.number, reason))
            return
        self._open[asked.principal] += 1
        nursery.start_soon(self._answer, channel, asked)

    async def _answer(self, channel: Channel, asked: AskToken | AskKeys) -> None:
        wanted = "keys" if isinstance(asked, AskKeys) else "token"
        answer: Message = BrokerRefused(asked.number, f"no {wanted} came within {asked.seconds:g} s")
        try:
            with trio.move_on_after(asked.seconds):
                answer = await self._answered(asked)
            await _say(channel, answer)
        finally:
            self._open[asked.principal] -= 1
            if not self._open[asked.principal]:
                del self._open[asked.principal]

    async def _answered(self, asked: AskToken | AskKeys) -> Message:
        try:
            if isinstance(asked, AskKeys):
                return await self._keys.keys(asked)
            return TokenGiven(asked.number, await self._tokens.token(asked))
        except (NoToken, NoKeys) as error:
            return BrokerRefused(asked.number, str(error))


async def _say(channel: Channel, message: Message) -> None:
    """A front that is gone, or does not read, waits for nothing."""
    with trio.move_on_after(SAY_SECONDS), suppress(OSError):
        await channel.send(message)
