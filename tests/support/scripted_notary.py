"""A notary's end of a front's channel that does what a test says, and a client that it is attached to."""

import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from frontend.deadlines import NotaryDeadlines
from frontend.notary.client import NotaryClient
from frontend.notary.in_force import NOTHING
from frontend.notary.link import FRONTS, Dialect
from ipc.channel.framing import Decoder, encode_frame
from ipc.limits import MAX_NOTARY_FRAME
from ipc.messages.message import Message
from ipc.messages.notary_frames import Answered, FrontToNotary, NumberedOperation


class Scripted:
    """A notary's end of the channel that does what the test says."""

    def __init__(self, sock: socket.socket, *, greets: bool = True) -> None:
        self._raw = sock
        self._sock = trio.socket.from_stdlib_socket(sock)
        self._decoder: Decoder[NumberedOperation] = Decoder(FrontToNotary, MAX_NOTARY_FRAME)
        self._heard: deque[NumberedOperation] = deque()
        self._greets = greets

    async def asked(self) -> NumberedOperation:
        """The next operation."""
        with trio.fail_after(60):
            while not self._heard:
                self._decoder.feed(data := await self._sock.recv(1 << 16))
                assert data, "the front closed the channel"
                while (message := self._decoder.next_message()) is not None:
                    self._heard.append(message)
        return self._heard.popleft()

    async def say(self, *messages: Message) -> None:
        """After the greeting that comes first."""
        greeting = (NOTHING,) if self._greets else ()
        self._greets = False
        await self.say_bytes(b"".join(encode_frame(message, MAX_NOTARY_FRAME) for message in (*greeting, *messages)))

    async def say_bytes(self, data: bytes) -> None:
        """As they are."""
        while data:
            data = data[await self._sock.send(data) :]

    def say_now(self, *messages: Message) -> None:
        """In this very turn of the loop."""
        data = b"".join(encode_frame(message, MAX_NOTARY_FRAME) for message in (NOTHING, *messages))
        assert self._raw.send(data) == len(data)

    async def take(self, count: int) -> bytes:
        """Some bytes of what was sent; none at its end."""
        with trio.fail_after(60):
            return await self._sock.recv(count)

    def die(self) -> None:
        """As a process does."""
        self._sock.close()


def answer(number: int, value: Any = None, problem: str | None = None, part: str | None = None) -> Answered:
    """An answer of the notary."""
    return Answered(number, msgspec.Raw(msgspec.msgpack.encode(value)), problem, part, problem and "why")


class Client(NotaryClient):
    """Knows the notaries that the test gave it."""

    def __init__(self, wait_seconds: float, dialect: Dialect = FRONTS) -> None:
        super().__init__(NotaryDeadlines(answer_seconds=wait_seconds), dialect)
        self.notaries: list[Scripted] = []


def attach(client: Client, *, greets: bool = True) -> Scripted:
    """A fresh notary."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    client.attach(ours)
    client.notaries.append(Scripted(theirs, greets=greets))
    return client.notaries[-1]


@asynccontextmanager
async def at_work(wait_seconds: float = 60.0, dialect: Dialect = FRONTS) -> AsyncIterator[tuple[Client, trio.Nursery]]:
    """A client that runs, and a nursery for those who ask."""
    client = Client(wait_seconds, dialect)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(client.run)
            yield client, nursery
            nursery.cancel_scope.cancel()
    finally:
        for notary in client.notaries:
            notary.die()
