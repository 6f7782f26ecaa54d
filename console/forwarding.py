"""The way to the gateway: one connection a request, few at a time, each under one deadline, answers of bounded size.

Passes on what a row of the table allows and what the page has sent to prove itself, and adds nothing: the process has
no key of its own. Never sends a request twice, as a proof counts once. SECURITY: API key and proof are in no log line
and in no error; they live as long as their request.
"""

import re
import ssl
from typing import Final
from urllib.parse import urlsplit

import httpcore
import trio

from console.endpoints import MAX_BODY, MAX_QUERY, ForwardedEndpoint
from frontend.http.answers import JSON_TYPE, TRACE_HEADER, Answer, json_answer
from frontend.http.client_bodies import AnswerTooLarge, OutgoingBody, read_at_most
from frontend.http.requests import Request
from frontend.telemetry.logs import log, trace_now

MAX_ANSWER: Final = 16 * 1024 * 1024
PLACES: Final = 16
"""Requests at the gateway at once."""
_BROKEN: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError, UnicodeError)
"""The last: the gateway's name can't be looked up, as `a..b`."""
_AUTHORIZATION: Final = re.compile(r"DPoP key-[a-z0-9_-]{1,64}")
_PROOF: Final = re.compile(r"[A-Za-z0-9_.-]{1,4096}")
_PASSED_ON: Final = {
    b"x-trace-id": TRACE_HEADER, b"retry-after": "Retry-After", b"x-receipt-id": "X-Receipt-Id",
    b"x-failure": "X-Failure", b"x-may-have-run": "X-May-Have-Run",
}  # fmt: skip
_VISIBLE: Final = re.compile(r"[!-~]{1,256}")


class _NotForwarded(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class Forwarder:
    """To one gateway, at `http://…`, `https://…` or `unix:///PATH`."""

    def __init__(self, gateway: str) -> None:
        self._socket = gateway.removeprefix("unix://") if gateway.startswith("unix://") else None
        parts = urlsplit("http://localhost" if self._socket is not None else gateway)
        self._origin = httpcore.Origin(
            parts.scheme.encode(), (parts.hostname or "").encode(), _port(parts.port, parts.scheme)
        )
        self._host = parts.netloc.encode("ascii")
        self._tls: ssl.SSLContext | None = ssl.create_default_context() if parts.scheme == "https" else None
        self._places = trio.CapacityLimiter(PLACES)
        self._rare = trio.CapacityLimiter(1)

    async def forward(self, endpoint: ForwardedEndpoint, request: Request) -> Answer:
        """Ask the gateway and return its answer, or an error that says why it gave none."""
        try:
            headers, body = await _checked(endpoint, request)
            with trio.move_on_after(endpoint.seconds):
                async with self._rare if endpoint.is_rare else self._places:
                    return await self._exchanged(request, headers, body)
            raise _NotForwarded(504, "gateway_timeout")
        except _NotForwarded as refused:
            if refused.status >= 500:
                log.warning(
                    "no answer of the gateway", code=refused.code, method=request.method, path=request.path
                )  # fmt: skip
            return json_answer(refused.status, {"error": refused.code}, ((TRACE_HEADER, trace_now()),))

    async def _exchanged(self, request: Request, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        target = f"{request.path}?{request.query}" if request.query else request.path
        origin = self._origin
        url = httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=target.encode("ascii"))
        sent = [(b"host", self._host), (b"accept", b"application/json"), (b"connection", b"close"), *headers]
        content = OutgoingBody(body) if body else None
        try:
            async with (
                httpcore.AsyncHTTPConnection(origin, ssl_context=self._tls, uds=self._socket) as connection,
                connection.stream(request.method, url, headers=sent, content=content) as response,
            ):
                answer = await read_at_most(response, MAX_ANSWER)
        except AnswerTooLarge:
            raise _NotForwarded(502, "gateway_not_understood") from None
        except _BROKEN:
            raise _NotForwarded(502, "gateway_unreachable") from None
        return _answer(response.status, response.headers, answer)


async def _checked(endpoint: ForwardedEndpoint, request: Request) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and body to forward. Raises _NotForwarded, and GateError for the body."""
    if len(request.query) > MAX_QUERY:
        raise _NotForwarded(400, "bad_request")
    body = await request.read_body(MAX_BODY if request.method == "POST" else 0)
    headers = []
    if endpoint.is_proved:
        for name, pattern in ((b"authorization", _AUTHORIZATION), (b"dpop", _PROOF)):
            values = [value for header, value in request.headers if header == name.decode()]
            if len(values) != 1 or not pattern.fullmatch(values[0]):
                raise _NotForwarded(401, "missing_auth_header" if not values else "invalid_operator_token")
            headers.append((name, values[0].encode("ascii")))
    if body:
        headers += [(b"content-type", JSON_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    return headers, body


def _answer(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
    """The gateway's answer for the page. Raises _NotForwarded for an answer in another form."""
    fields = {name.lower(): value.decode("latin-1") for name, value in headers}
    if status < 200 or 300 <= status < 400 or fields.get(b"content-type", "").partition(";")[0] != JSON_TYPE:
        raise _NotForwarded(502, "gateway_not_understood")
    passed = [(shown, fields[name]) for name, shown in _PASSED_ON.items() if _VISIBLE.fullmatch(fields.get(name, ""))]
    return Answer(status, body, tuple(passed))


def _port(given: int | None, scheme: str) -> int:
    return given if given is not None else 443 if scheme == "https" else 80
