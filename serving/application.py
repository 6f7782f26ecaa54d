"""One request as an ASGI application: its body is read whole within its bounds, a handler answers, the answer is sent.

Each has a deadline. A client that does not take its answer in time is cut, also below HTTP, where hypercorn can't be
cancelled. Guarantees an answer in JSON for each refusal here; hypercorn answers bytes that are no request, without a
body.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from frontend.errors import GateError
from frontend.http.answers import INTERNAL_ERROR, TRACE_HEADER, Answer, error_answer
from frontend.http.requests import CompleteBody, Request
from frontend.telemetry.logs import begin_trace, log, trace_now
from serving.connections import ServedConnection, ServedConnections
from serving.limits import ServingLimits

Respond = Callable[[Request], Awaitable[Answer]]
Message = dict[str, Any]
CONNECTION: Final = "served_connection"
"""Where the state of a scope has the connection."""
MAX_HEADERS: Final = 100
_VALUE: Final = re.compile(rb"[\t -~\x80-\xff]*")
MAX_SWALLOWED: Final = 1024 * 1024
"""Bytes that are thrown away of a body that is too large, so that its client reads the answer."""


class _Gone(Exception):
    """The client has left inside its body."""


class HandledRequests:
    """All requests of one process, for one handler."""

    def __init__(self, kind: str, respond: Respond, limits: ServingLimits, connections: ServedConnections) -> None:
        """`kind` is what requests say of the socket."""
        self._kind = kind
        self._respond = respond
        self._limits = limits
        self._connections = connections

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Answer one request. The connection of a WebSocket, or of HTTP/2 without TLS, is cut."""
        connection: ServedConnection = scope["state"][CONNECTION]
        if scope["type"] != "http" or scope["http_version"] not in ("1.0", "1.1"):
            connection.cut()
            return
        connection.idle_since = None
        begin_trace()
        try:
            body, is_whole = await self._body(receive)
        except _Gone:
            return
        refusal = _refusal(scope)
        if refusal is not None:
            body, is_whole = refusal, False
        answer = await self._answer(scope, body)
        await self._send(connection, answer, send, is_last=not is_whole)
        connection.idle_since = trio.current_time()
        if not is_whole:
            connection.cut()

    async def _body(self, receive: Callable[[], Awaitable[Message]]) -> tuple[bytes | GateError, bool]:
        """The body, or why it is refused, and whether all of it has come. Raises _Gone."""
        parts: list[bytes] = []
        size, most = 0, self._limits.max_body
        with trio.move_on_after(self._limits.body_seconds):
            while size <= most + MAX_SWALLOWED:
                message = await receive()
                if message["type"] != "http.request":
                    raise _Gone
                size += len(message["body"])
                if size <= most:
                    parts.append(message["body"])
                if not message["more_body"]:
                    return b"".join(parts) if size <= most else GateError("body_too_large"), True
        return GateError("body_too_large" if size > most else "request_timeout"), False

    async def _answer(self, scope: Message, body: bytes | GateError) -> Answer:
        path: str = scope["raw_path"].decode("ascii")
        try:
            if isinstance(body, GateError):
                raise body
            headers = [(name.decode("ascii"), value.decode("latin-1")) for name, value in scope["headers"]]
            query = scope["query_string"].decode("ascii")
            return await self._respond(
                Request(scope["method"], path, query, headers, listener=self._kind, body=CompleteBody(body))
            )
        except GateError as error:
            return error_answer(error)
        except Exception:
            log.exception("a handler failed", method=scope["method"], path=path)
            return INTERNAL_ERROR

    async def _send(
        self, connection: ServedConnection, answer: Answer, send: Callable[[Message], Awaitable[None]], *, is_last: bool
    ) -> None:
        with self._connections.unsent(connection, len(answer.body)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cut_late, connection)
                headers = _headers(answer, is_last=is_last)
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                await send({"type": "http.response.body", "body": answer.body})
                nursery.cancel_scope.cancel()

    async def _cut_late(self, connection: ServedConnection) -> None:
        await trio.sleep(self._limits.send_seconds)
        log.warning("connection cut: its client does not take the answer")
        connection.cut()


def _refusal(scope: Message) -> GateError | None:
    """Why this head is not answered: it is too large, or a proxy in front could read it in another way."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if len(headers) > MAX_HEADERS:
        return GateError("headers_too_large")
    has_two_lengths = {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}
    if (
        has_two_lengths
        or not scope["raw_path"].startswith(b"/")
        or any(_VALUE.fullmatch(value) is None for _, value in headers)
    ):
        return GateError("bad_request")
    return None


def _headers(answer: Answer, *, is_last: bool) -> list[tuple[bytes, bytes]]:
    """All headers but the date. No cache on the way may keep an answer."""
    named = [
        ("cache-control", "no-store"), ("content-type", answer.content_type), ("content-length", str(len(answer.body))),
        *answer.headers,
    ]  # fmt: skip
    if all(name != TRACE_HEADER for name, _ in answer.headers):
        named.append((TRACE_HEADER, trace_now()))
    if is_last:
        named.append(("connection", "close"))
    return [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in named]
