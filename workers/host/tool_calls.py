"""The call of a tool of an MCP server: the few requests around it, over streamable HTTP.

Guarantees that the tool is called at most once, with the planned message, and only after the server has listed it in
the same conversation exactly as the manifest pins it. Servers of the revision 2026-07-28 are asked without a session,
earlier ones with a handshake; a session is ended. Answers come as JSON or as events; a request that a server makes is
not answered. Bytes, messages, pages and time are bounded.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from ipc.mcp_tools import tool_digest
from ipc.messages.calling import FailureName
from ipc.plan import PlannedTool
from ipc.texts.canonical import NotCanonical, canonical_bytes
from workers.host.event_stream import EventStream
from workers.host.meter import HostError, Meter
from workers.host.mirrored import mirrored_headers
from workers.host.wire import EVENT_STREAM, USER_AGENT, Headers, IsEnough, Response, media_type

STATELESS: Final = "2026-07-28"
"""The revision whose requests stand alone."""
WITH_SESSION: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that begin with a handshake, the one that is asked for first."""
MAX_LISTING_BYTES = 4 * 1_048_576
"""Each answer but that of the tool itself, which `max_response_bytes` bounds."""
MAX_PAGES = 32
CHANGED = "tool_changed"
"""The outcome of a call whose tool is not listed as it is pinned."""
_META = "io.modelcontextprotocol/"
_LIST = "tools/list"
_INITIALIZE_ID, _LIST_ID = 1001, 2001
_MAX_SESSION_CHARACTERS = 1024
_FAREWELL_SECONDS = 2.0
_SERVER = "the MCP server"


class Outgoing(NamedTuple):
    """A request of the conversation, to the planned address."""

    method: str
    headers: Headers
    body: bytes
    max_body: int
    is_enough: IsEnough | None = None
    seconds: float | None = None
    """A bound besides the call's own deadline."""
    has_effect: bool = True
    """False for requests around the call: none of them runs the tool."""


Carry = Callable[[Outgoing], Response]
"""Sends one request, counted and observed. Raises HostError, IoBudgetExceeded."""
Message = dict[str, Any]


class ToolCall:
    """One conversation. `carry` sends its requests."""

    def __init__(self, tool: PlannedTool, body: str, carry: Carry, meter: Meter, max_answer: int) -> None:
        """`body` is the planned message."""
        self._tool = tool
        self._call: Message = msgspec.json.decode(body)
        self._carry = carry
        self._meter = meter
        self._max_answer = max_answer
        self._session: Headers = ()
        self._version = STATELESS
        self._mirrored: Headers = ()

    def run(self) -> Response:
        """The server's answer to the call, as one JSON body. Raises HostError, IoBudgetExceeded."""
        try:
            found = self._listed()
            self._check(found)
            self._mirrored = mirrored_headers(found[0].get("inputSchema"), self._call["params"]["arguments"])
            return self._ask(self._call, self._max_answer)
        finally:
            self._end_session()

    def _listed(self) -> list[Message]:
        """Every listed tool of the planned name, up to the page that has one."""
        first = self._try_stateless()
        if first is None:
            self._begin_session()
            first = self._result(_request(_LIST_ID, _LIST, {}))
        for number, page in enumerate(self._pages(first)):
            tools = page.get("tools")
            if not isinstance(tools, list) or number >= MAX_PAGES:
                raise _unusable("it does not list its tools as it should")
            found = [tool for tool in tools if isinstance(tool, dict) and tool.get("name") == self._tool.name]
            if found:
                return found
        return []

    def _pages(self, page: Message) -> Iterator[Message]:
        number = _LIST_ID
        while True:
            yield page
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return
            number += 1
            page = self._result(_request(number, _LIST, {"cursor": cursor}))

    def _check(self, found: list[Message]) -> None:
        """SECURITY: what a person read, pinned and approved is what the server offers now; nothing else is called."""
        if not found:
            self._refuse("the MCP server does not list it any more")
        try:
            digest = tool_digest(found[0]) if len(found) == 1 else None
        except NotCanonical:
            digest = None
        if digest is None:
            self._refuse("the MCP server lists it twice, or so that it has no digest")
        if digest != self._tool.digest:
            self._refuse(f"its name, description or input schema has changed: the digest is {digest}")

    def _refuse(self, why: str) -> NoReturn:
        self._meter.fails_as = CHANGED
        raise HostError("denied", f"the tool {self._tool.name} is not the one of the manifest: {why}")

    def _try_stateless(self) -> Message | None:
        """The first page of the tools; None from a server that knows no requests without a session."""
        wanted = _request(_LIST_ID, _LIST, {})
        response = self._post(wanted, MAX_LISTING_BYTES)
        if response.status in (401, 403, 407, 429) or response.status >= 500:
            raise _unusable(f"it answered {response.status}", response.status)
        answer = _answer_in(response, _LIST_ID)
        result = None if answer is None else answer.get("result")
        return result if isinstance(result, dict) else None

    def _begin_session(self) -> None:
        self._version = WITH_SESSION[0]
        client = {"name": USER_AGENT, "version": "1"}
        offer = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": client}
        response = self._post(_request(_INITIALIZE_ID, "initialize", offer), MAX_LISTING_BYTES)
        ids = [value for name, value in response.headers if name == "mcp-session-id"]
        if len(ids) > 1 or any(not _is_session_id(one) for one in ids):
            raise _unusable("its session has no id that can be sent")
        self._session = tuple(("mcp-session-id", one) for one in ids)
        version = _result_in(_needed(response, _INITIALIZE_ID)).get("protocolVersion")
        if version not in WITH_SESSION:
            raise _unusable("it speaks no revision of the protocol that is known here")
        self._version = version
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        accepted = self._post(note, MAX_LISTING_BYTES).status
        if not 200 <= accepted < 300:
            raise _unusable(f"it answered {accepted} to the end of the handshake", accepted)

    def _end_session(self) -> None:
        """Tell the server that its session is over, as far as time and budget allow."""
        if not self._session or not self._meter.has_more:
            return
        with suppress(HostError):
            seconds = min(_FAREWELL_SECONDS, self._meter.remaining() / 2)
            self._carry(Outgoing("DELETE", self._headers({}), b"", 65_536, seconds=seconds, has_effect=False))

    def _result(self, message: Message) -> Message:
        return _result_in(_needed(self._post(message, MAX_LISTING_BYTES), message["id"]))

    def _ask(self, message: Message, max_body: int) -> Response:
        """The answer to this message alone, without what came around it."""
        response = self._post(message, max_body, self._seconds_for_answer())
        answer = _needed_bytes(response, message["id"])
        return Response(200, (("content-type", "application/json"),), answer)

    def _seconds_for_answer(self) -> float | None:
        """Less than the call has, where a session must be ended: a server keeps one that is not, and what it runs."""
        if not self._session:
            return None
        left = self._meter.remaining()
        return left - min(_FAREWELL_SECONDS, left / 8)

    def _post(self, message: Message, max_body: int, seconds: float | None = None) -> Response:
        sent = self._with_envelope(message)
        wanted = message.get("id")
        events = EventStream(lambda data: _is_answer(data, wanted))
        body = canonical_bytes(sent)
        is_call = message is self._call
        return self._carry(
            Outgoing("POST", self._headers(message), body, max_body, events.feed, seconds, has_effect=is_call)
        )

    def _with_envelope(self, message: Message) -> Message:
        """The message with the members that each request of the stateless revision has."""
        if self._version != STATELESS:
            return message
        meta = {
            _META + "protocolVersion": STATELESS,
            _META + "clientCapabilities": {},
            _META + "clientInfo": {"name": USER_AGENT, "version": "1"},
        }
        return {**message, "params": {**message["params"], "_meta": meta}}

    def _headers(self, message: Mapping[str, Any]) -> Headers:
        common: Headers = (
            ("accept", f"application/json, {EVENT_STREAM}"),
            *((("content-type", "application/json"),) if message else ()),
            *self._session,
        )
        if message.get("method") == "initialize":
            return common
        common = (*common, ("mcp-protocol-version", self._version))
        if self._version != STATELESS:
            return common
        named = message["params"].get("name")
        return (*common, ("mcp-method", message["method"]), *((("mcp-name", named), *self._mirrored) if named else ()))


def _request(number: int, method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _unusable(why: str, status: int = 200) -> HostError:
    name: FailureName = "upstream_status" if status >= 400 else "upstream_reset"
    return HostError("unavailable", f"{_SERVER} can't be used: {why}", name=name)


def _is_session_id(text: str) -> bool:
    return 0 < len(text) <= _MAX_SESSION_CHARACTERS and all("!" <= character <= "~" for character in text)


def _result_in(answer: Message) -> Message:
    result = answer.get("result")
    if not isinstance(result, dict):
        raise _unusable("it refused a request that every such server knows")
    return result


def _needed(response: Response, number: int) -> Message:
    answer: Message = msgspec.json.decode(_needed_bytes(response, number))
    return answer


def _needed_bytes(response: Response, number: int) -> bytes:
    """The answer to the request of this number. Raises HostError if none came."""
    data = _bytes_of_answer(response, number)
    if data is None:
        problem = f"its answer with the status {response.status} holds no answer to the request"
        raise _unusable(problem, response.status)
    return data


def _answer_in(response: Response, number: int) -> Message | None:
    data = _bytes_of_answer(response, number)
    return None if data is None else _message(data)


def _bytes_of_answer(response: Response, number: int) -> bytes | None:
    """A status that tells of no success may come with an error of the protocol, never with a result."""
    found: list[bytes] = []

    def keep(data: bytes) -> bool:
        is_wanted = _is_answer(data, number)
        found.extend([data] if is_wanted else [])
        return is_wanted

    if media_type(response.headers) == EVENT_STREAM:
        EventStream(keep).feed(response.body)
    else:
        keep(response.body)
    if not found or (not 200 <= response.status < 300 and "result" in (_message(found[0]) or {})):
        return None
    return found[0]


def _is_answer(data: bytes, number: object) -> bool:
    """True for an answer to the request of this number; notifications and the server's own requests are not answers."""
    message = _message(data)
    if message is None or "method" in message or type(message.get("id")) is not int:
        return False
    return message["id"] == number and ("result" in message) != ("error" in message)


def _message(data: bytes) -> Message | None:
    try:
        message = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
