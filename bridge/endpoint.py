"""The endpoint `/mcp`: streamable HTTP with sessions and JSON answers, for the revisions of MCP that have a handshake.

SECURITY: a web page can send nothing here: a request with an `Origin` is refused, and so is one for another `Host` than
this machine's names and those of `--host` (DNS rebinding). There is no stream from the server (GET): a client learns
only the answers to its own requests.
"""

from collections.abc import Collection
from typing import Final

import msgspec
import trio

from bridge.messages import (
    INVALID_REQUEST,
    SERVER_FAILED,
    InvalidMessage,
    JsonRpcMessage,
    MessageId,
    error_body,
    read_message,
)
from bridge.session import BridgeSession, NotAccepted, SessionEnded
from bridge.sessions import BridgeSessions, NoServer
from frontend.http.answers import JSON_TYPE, Answer, json_answer
from frontend.http.requests import Request
from frontend.telemetry.logs import log

PATH: Final = "/mcp"
MAX_BODY: Final = 4 * 1024 * 1024
OWN_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_LOGGED: Final = frozenset({403, 429, 502, 503, 504})
"""Refusals that an operator looks for; the others are steps of the protocol."""
SESSION_HEADER: Final = "Mcp-Session-Id"


class Endpoint:
    """Answers requests. `hosts` are the names that clients may use beside this machine's own."""

    def __init__(self, sessions: BridgeSessions, hosts: Collection[str]) -> None:
        self._sessions = sessions
        self._hosts = OWN_HOSTS.union(name.lower() for name in hosts)

    async def respond(self, request: Request) -> Answer:
        """The answer to one request."""
        answer = await self._answered(request)
        if answer.status in _LOGGED:
            log.warning("refused", method=request.method, status=answer.status)
        return answer

    async def _answered(self, request: Request) -> Answer:
        if not self._is_for_us(request):
            return _error(403, None, INVALID_REQUEST, "foreign Host or Origin")
        if request.path != PATH:
            return _error(404, None, INVALID_REQUEST, f"the endpoint is {PATH}")
        if request.method == "DELETE":
            return self._deleted(request)
        if request.method != "POST":
            answer = _error(405, None, INVALID_REQUEST, "POST or DELETE")
            return msgspec.structs.replace(answer, headers=(("Allow", "POST, DELETE"),))
        kinds = [value.partition(";")[0].strip().lower() for value in _values(request, "content-type")]
        if kinds != [JSON_TYPE]:
            return _error(415, None, INVALID_REQUEST, f"Content-Type must be {JSON_TYPE}")
        body = await request.read_body(MAX_BODY)
        try:
            message = read_message(body)
        except InvalidMessage as invalid:
            return _error(400, None, INVALID_REQUEST, str(invalid))
        return await self._posted(request, message, body)

    def _is_for_us(self, request: Request) -> bool:
        hosts = _values(request, "host")
        return len(hosts) == 1 and _without_port(hosts[0].lower()) in self._hosts and not _values(request, "origin")

    def _deleted(self, request: Request) -> Answer:
        for identifier in _values(request, SESSION_HEADER.lower()):
            if self._sessions.find(identifier) is not None:
                self._sessions.end(identifier, "the client ended it")
                return Answer(204)
        return _error(404, None, INVALID_REQUEST, "no such session")

    async def _posted(self, request: Request, message: JsonRpcMessage, body: bytes) -> Answer:
        identifiers = _values(request, SESSION_HEADER.lower())
        if not identifiers:
            if message.method != "initialize" or message.id is None:
                return _error(400, message.id, INVALID_REQUEST, f"no {SESSION_HEADER}: send initialize first")
            return await self._opened(message.id, body)
        session = self._sessions.find(identifiers[0]) if len(identifiers) == 1 else None
        if session is None:
            return _error(404, message.id, INVALID_REQUEST, "no such session: send initialize again")
        if message.is_request and message.id is not None:
            return await _asked(session, message.id, body)
        try:
            await session.tell(body)
        except (SessionEnded, trio.TooSlowError):
            return _error(404, None, INVALID_REQUEST, "no such session: send initialize again")
        return Answer(202)

    async def _opened(self, identifier: MessageId, body: bytes) -> Answer:
        try:
            token, session = self._sessions.open()
        except NoServer as refused:
            return _error(503, identifier, SERVER_FAILED, str(refused))
        answer = await _asked(session, identifier, body)
        if answer.status != 200 or not read_message(answer.body).result:
            session.end("the server refused initialize")
            return answer
        return msgspec.structs.replace(answer, headers=((SESSION_HEADER, token),))


async def _asked(session: BridgeSession, identifier: MessageId, body: bytes) -> Answer:
    try:
        return Answer(200, await session.ask(identifier, body))
    except NotAccepted as refused:
        return _error(429, identifier, INVALID_REQUEST, str(refused))
    except SessionEnded:
        return _error(502, identifier, SERVER_FAILED, "the server ended; send initialize again")
    except trio.TooSlowError:
        return _error(504, identifier, SERVER_FAILED, "the server gave no answer in time; send initialize again")


def _error(status: int, identifier: MessageId | None, code: int, message: str) -> Answer:
    return json_answer(status, error_body(identifier, code, message))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _values(request: Request, name: str) -> list[str]:
    return [value for header, value in request.headers if header == name]
