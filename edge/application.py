"""One request of an agent, as an ASGI application: its body is read whole, then forwarded, then the answer is sent.

An answer is read whole before it is sent, so that a slow client holds no place at the gateway. Each request has its
bounds: head, body, time of the body, time of the answer, and how many its address has under way.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Final, Protocol

import trio

from edge.answers import ClientAnswer
from edge.connection import CONNECTION, EdgeConnection
from edge.connections import EdgeConnections
from edge.endpoints import edge_endpoint
from edge.gateway import ClientSocket, NoAnswer
from edge.heads import BadHead, Headers, answer_headers, request_headers, stated_length
from edge.held import HeldBytes, WholeAnswer
from frontend.telemetry.logs import begin_trace, log
from ipc.configuration.edge_settings import EdgeLimitSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
MAX_BODY: Final = 1_048_576
"""As the gateway has it."""
ENDING: Final = frozenset({"bad_request", "certificate_over", "draining"})
"""Refusals after which no other request of the connection would be served, or could be told from this one."""
BUSY: Final = frozenset({"edge_busy", "gateway_busy", "answer_too_large"})
"""Refusals for want of room, which count."""
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
        sender = ClientAnswer(send, connection, self._limits.send_seconds, is_http2=scope["http_version"] == "2")
        with connection.request():
            if not self._connections.begin_request(connection.address):
                await sender.refuse(503, "edge_busy")
                return
            try:
                await self._served(scope, receive, sender, connection)
            finally:
                self._connections.end_request(connection.address)

    async def _served(self, scope: Message, receive: Receive, sender: ClientAnswer, connection: EdgeConnection) -> None:
        """Answer it, or refuse it, or cut its connection."""
        try:
            await self._answer(scope, receive, sender, connection)
        except _Left:
            return
        except _CutOff:
            connection.abort()
        except (_Refused, NoAnswer) as refused:
            if refused.code in BUSY:
                self._connections.refusals.count(refused.code, connection.address)
            if refused.status >= 500:
                log.warning("no answer of the gateway", code=refused.code, path=scope["path"])
            if sender.has_begun:
                connection.abort()
            else:
                connection.is_ending = refused.code in ENDING and scope["http_version"] != "2"
                await sender.refuse(refused.status, refused.code)
                if connection.is_ending:
                    connection.abort()
        except Exception as error:
            log.error("request failed", path=scope["path"], error=type(error).__name__)
            connection.abort()

    async def _answer(self, scope: Message, receive: Receive, sender: ClientAnswer, connection: EdgeConnection) -> None:
        if self._connections.refuses:
            raise _Refused(503, "draining")
        if connection.is_distrusted:
            raise _Refused(421, "certificate_over")
        try:
            headers = request_headers(scope["headers"], connection.certificate)
        except BadHead:
            raise _Refused(400, "bad_request") from None
        body = _RequestBody(self._connections.bodies, connection.address)
        whole = WholeAnswer(self._connections.answers, connection.address, connection.cut_slow)
        try:
            await self._read(body, receive)
            if stated_length(scope["headers"]) not in (None, body.size):
                raise _Refused(400, "bad_request")
            with connection.whole_request():
                if self._own is not None and self._own.serves(scope["raw_path"]):
                    await self._own.answer(scope, body.whole(), receive, partial(_pass_on, sender, whole))
                else:
                    await self._forward(scope, headers, body, whole, sender)
        finally:
            whole.release()
            body.release()

    async def _forward(
        self, scope: Message, headers: Headers, body: "_RequestBody", whole: WholeAnswer, sender: ClientAnswer
    ) -> None:
        """Send what the gateway answers. Raises _Refused, NoAnswer."""
        path, query = scope["raw_path"], scope["query_string"]
        endpoint = edge_endpoint(scope["method"], path, query)
        if endpoint is None:
            raise _Refused(404, "not_found")
        if body.size and endpoint.method == "GET":
            raise _Refused(400, "bad_request")
        target = path + b"?" + query if query else path
        async with self._gateway.asked(whole.address, endpoint, target, headers, body.whole()) as answer:
            status, passed = answer.status, answer_headers(answer.headers)
            async for part in answer.parts():
                await _keep(whole, part)
        whole.wait()
        await sender.begin(status, passed)
        for part in whole.parts:
            await sender.more(part)
        await sender.end()

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


async def _pass_on(sender: ClientAnswer, whole: WholeAnswer, message: Message) -> None:
    """Send a message of an endpoint of the edge's own; the client takes it from memory, too. A stream that has nothing
    to send for now waits for no client, so that it is not the one to be cut."""
    await _keep(whole, message.get("body", b""))
    whole.wait()
    await sender.pass_on(message)
    whole.release()


async def _keep(whole: WholeAnswer, part: bytes) -> None:
    """Keep a part of an answer. Raises _Refused."""
    try:
        await whole.keep(part)
    except trio.TooSlowError:
        raise _Refused(502, "answer_too_large") from None


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
