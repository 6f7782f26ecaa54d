"""One answer on its way to the client."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import trio

from edge.connection import EdgeConnection
from frontend.telemetry.logs import trace_now

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


class ClientAnswer:
    """The answer's way to the client, with one budget of time for all that is sent."""

    def __init__(self, send: Send, connection: EdgeConnection, seconds: float, *, is_http2: bool) -> None:
        self._send = send
        self._is_http2 = is_http2
        self._connection = connection
        self._left = seconds
        self.has_begun = False

    async def pass_on(self, message: Message) -> None:
        """A message of an endpoint of the edge's own."""
        self.has_begun = True
        await self._sent(message)

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """In HTTP/1.1 the head is sent with the body's first part, or with its end."""
        self.has_begun = True
        self._connection.holds_back = not self._is_http2
        await self._sent({"type": "http.response.start", "status": status, "headers": headers})
        self._connection.holds_back = False

    async def more(self, part: bytes) -> None:
        await self._sent({"type": "http.response.body", "body": part, "more_body": True})

    async def end(self) -> None:
        await self._sent({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, status: int, code: str) -> None:
        """An answer of the edge itself."""
        body = msgspec.json.encode({"error": code})
        await self.begin(status, [
            (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)),
            (b"x-trace-id", trace_now().encode()),
        ])  # fmt: skip
        await self.more(body)
        await self.end()

    async def _sent(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._connection.is_draining and not self._is_http2:
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        begun = trio.current_time()
        self._connection.late[self] = begun + self._left
        try:
            await self._send(message)
        finally:
            self._connection.late.pop(self, None)
            self._left -= trio.current_time() - begun
