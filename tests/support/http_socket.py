"""A client that speaks bytes to a server on a real socket, and reads answers with h11 as the judge."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import h11
import trio

from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.http.server import Server
from tests.support.replies import Reply

DEADLINE = 60.0


class Client:
    """One connection. Every wait has a deadline; answers are parsed by h11, so a malformed one fails the test."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._received = bytearray()

    async def send(self, data: bytes) -> None:
        with trio.fail_after(DEADLINE):
            await self.stream.send_all(data)

    async def reply(self, method: str = "GET") -> Reply:
        """The next final answer to a request of `method`."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        if self._received:
            parser.receive_data(bytes(self._received))
        status, headers, body = 0, {}, bytearray()
        with trio.fail_after(DEADLINE):
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    data = await self.stream.receive_some()
                    if not data and not status:
                        raise EOFError
                    parser.receive_data(data)
                elif isinstance(event, h11.Response):
                    status = event.status_code
                    headers = {name.decode(): value.decode() for name, value in event.headers}
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    self._received = bytearray(parser.trailing_data[0])
                    return Reply(status, headers, bytes(body))

    async def ask(self, data: bytes) -> Reply:
        await self.send(data)
        return await self.reply(data.split(b" ", 1)[0].decode("latin-1"))

    async def rest(self) -> bytes:
        """Everything up to the end of the stream; a reset counts as the end."""
        with trio.fail_after(DEADLINE):
            while True:
                try:
                    data = await self.stream.receive_some()
                except trio.BrokenResourceError:
                    data = b""
                if not data:
                    return bytes(self._received)
                self._received += data


class Running(NamedTuple):
    """A server that listens on 127.0.0.1 and, when asked, on a Unix socket."""

    server: Server
    address: tuple[str, int]
    path: str

    def client(self, *, unix: bool = False) -> AbstractAsyncContextManager[Client]:
        return connected(self.path if unix else self.address)


@asynccontextmanager
async def connected(address: tuple[str, int] | str) -> AsyncIterator[Client]:
    """A client of a TCP address or of the path of a Unix socket."""
    sock = trio.socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    with sock:
        with trio.fail_after(DEADLINE):
            await sock.connect(address)
        yield Client(trio.SocketStream(sock))


Respond = Callable[[Request], Awaitable[Answer]]
Serving = Callable[..., AbstractAsyncContextManager[Running]]
"""`async with serving(respond, min_idle_seconds=…, **limits) as running`: TCP is `merged`, the Unix socket is
`client`."""


async def echo(request: Request) -> Answer:
    """Says what it was asked, body included."""
    body = await request.read_body()
    return json_answer(
        200,
        {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "headers": request.headers,
            "listener": request.listener,
            "peer": request.peer,
            "body": body.decode("latin-1"),
        },
    )


def get(path: str = "/", *headers: str) -> bytes:
    return request("GET", path, b"", *headers)


def request(method: str, path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: gateway", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    with trio.fail_after(DEADLINE):
        while not condition():  # noqa: ASYNC110 (what is waited for has no event)
            await trio.sleep(0.001)
