"""One request of an agent, as an ASGI application: its body is read whole, then forwarded, then the answer is sent.

An answer is read ahead as far as the memory for answers has room; the rest is streamed. So a slow client holds no place
at the gateway, unless its answer is larger than that. Each request has its bounds: head, body, time of the body, time
of the answer, and how many its address has under way.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol

import msgspec
import trio

from edge.connections import CONNECTION, EdgeConnection, EdgeConnections
from edge.endpoints import edge_endpoint
from edge.gateway import ClientSocket, NoAnswer
from edge.heads import BadHead, answer_headers, request_headers, stated_length
from edge.held import HeldBytes, ReadAhead
from frontend.telemetry.logs import begin_trace, log, trace_now
from ipc.edge_settings import EdgeLimitSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
MAX_BODY: Final = 1_048_576
"""As the gateway has it."""
MAX_UNREAD: Final = 4 * MAX_BODY
"""Bytes of a body that are read at most: beyond MAX_BODY they are thrown away, and its client reads the answer."""


class _Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class _CutOff(Exception):
    """The client is cut off."""


class _Left(Exception):
    """The client has gone, or has reset the stream of this request alone."""


class OwnEndpoint(Protocol):
    """An endpoint that the edge answers itself."""

    def serves(self, path: bytes) -> bool:
        """True for its paths."""

    async def answer(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a request whose body has been read."""


class EdgeApplication:
    """All requests."""

    def __init__(
        self, gateway: ClientSocket, connections: EdgeConnections, limits: EdgeLimitSettings, own: OwnEndpoint | None
    ) -> None:
        self._gateway = gateway
        self._connections = connections
        self._limits = limits
        self._own = own

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        connection: EdgeConnection = scope["state"][CONNECTION]
        if scope["type"] != "http" or connection.is_ending:
            connection.abort()
            return
        begin_trace()
        sender = _Sender(send, connection, self._limits.send_seconds, is_http2=scope["http_version"] == "2")
        with connection.request():
            if not self._connections.begin_request(connection.address):
                await sender.refuse(503, "edge_busy")
                return
            try:
                await self._served(scope, receive, sender, connection)
            finally:
                self._connections.end_request(connection.address)

    async def _served(self, scope: Message, receive: Receive, sender: "_Sender", connection: EdgeConnection) -> None:
        """Answer it, or refuse it, or cut its connection."""
        try:
            await self._answer(scope, receive, sender, connection)
        except _Left:
            return
        except _CutOff:
            connection.abort()
        except (_Refused, NoAnswer) as refused:
            if refused.status >= 500:
                log.warning("no answer of the gateway", code=refused.code, path=scope["path"])
            if sender.has_begun:
                connection.abort()
            else:
                connection.is_ending = refused.status == 400 and scope["http_version"] != "2"
                await sender.refuse(refused.status, refused.code)
                if connection.is_ending:
                    connection.abort()
        except Exception as error:
            log.error("request failed", path=scope["path"], error=type(error).__name__)
            connection.abort()

    async def _answer(self, scope: Message, receive: Receive, sender: "_Sender", connection: EdgeConnection) -> None:
        try:
            headers = request_headers(scope["headers"], connection.certificate)
        except BadHead:
            raise _Refused(400, "bad_request") from None
        body = _RequestBody(self._connections.bodies, connection.address)
        try:
            await self._read(body, receive)
            path, query = scope["raw_path"], scope["query_string"]
            if stated_length(scope["headers"]) not in (None, body.size):
                raise _Refused(400, "bad_request")
            if self._own is not None and self._own.serves(path):
                await self._own.answer(scope, body.whole(), receive, sender.pass_on)
                return
            endpoint = edge_endpoint(scope["method"], path, query)
            if endpoint is None:
                raise _Refused(404, "not_found")
            if body.size and endpoint.method == "GET":
                raise _Refused(400, "bad_request")
            target = path + b"?" + query if query else path
            ahead = ReadAhead(self._connections.answers, connection.address)
            try:
                asked = self._gateway.asked(connection.address, endpoint, target, headers, body.whole())
                async with asked as answer:
                    status, passed = answer.status, answer_headers(answer.headers)
                    async for part in answer.parts():
                        if not ahead.keep(part):
                            await sender.begin_once(status, passed, ahead.parts)
                            await sender.more(part)
                await sender.begin_once(status, passed, ahead.parts)
                await sender.end()
            finally:
                ahead.release()
        finally:
            body.release()

    async def _read(self, body: "_RequestBody", receive: Receive) -> None:
        """All of it. Raises _Refused, _CutOff and _Left."""
        with trio.move_on_after(self._limits.body_seconds):
            while body.size <= MAX_UNREAD:
                message = await receive()
                if message["type"] != "http.request":
                    raise _Left
                body.add(message["body"])
                if not message["more_body"]:
                    body.check()
                    return
            raise _CutOff
        raise _Refused(408, "request_timeout")


class _RequestBody:
    """The body of one request, and its part of the memory for bodies. A body that is too large is not kept."""

    def __init__(self, memory: HeldBytes, address: str) -> None:
        self._memory = memory
        self._address = address
        self._parts: list[bytes] = []
        self._held = 0
        self._has_room = True
        self.size = 0

    def add(self, part: bytes) -> None:
        """Keep a part, if all bodies have room for it."""
        self.size += len(part)
        if self.size > MAX_BODY or not self._has_room:
            self.release()
        elif self._memory.hold(self._address, len(part)):
            self._held += len(part)
            self._parts.append(part)
        else:
            self._has_room = False
            self.release()

    def check(self) -> None:
        """Raises _Refused for a body that was not kept."""
        if self.size > MAX_BODY:
            raise _Refused(413, "payload_too_large")
        if not self._has_room:
            raise _Refused(503, "edge_busy")

    def whole(self) -> bytes:
        """All parts."""
        return b"".join(self._parts)

    def release(self) -> None:
        """Give the memory back."""
        self._memory.let_go(self._address, self._held)
        self._held = 0
        self._parts.clear()


class _Sender:
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

    async def begin_once(self, status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes]) -> None:
        """Begin the answer and send its first parts, if it has not begun."""
        if self.has_begun:
            return
        await self.begin(status, headers)
        for part in parts:
            await self.more(part)

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
        begun = trio.current_time()
        self._connection.late[self] = begun + self._left
        try:
            await self._send(message)
        finally:
            self._connection.late.pop(self, None)
            self._left -= trio.current_time() - begun
