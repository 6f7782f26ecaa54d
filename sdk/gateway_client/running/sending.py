"""HTTP code that both runners share: building a request for httpx, reading an answer within a bound, naming a failure.

Guarantees that a failure of the network becomes Unreachable or ProtocolViolation without the library's own exception
behind it, which would carry the request and so its token.
"""

import ssl
from collections.abc import Iterator, Mapping

import h11
import httpcore
import httpx

from gateway_client.calling.core import Limits
from gateway_client.errors import GatewayError, ProtocolViolation, Unreachable
from gateway_client.wire.address import Address
from gateway_client.wire.exchange import ReceivedAnswer, SentRequest

_NOT_SENT = (
    httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout, httpcore.UnsupportedProtocol,
    httpcore.LocalProtocolError, httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol,
    httpx.LocalProtocolError, httpx.InvalidURL,
)  # fmt: skip
_LATE = (httpcore.TimeoutException, httpx.TimeoutException, TimeoutError)
FAILURES = (
    httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol,
    httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError,
)  # fmt: skip
"""Exceptions of sending and reading."""


_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def tls_context(address: Address) -> ssl.SSLContext:
    """The system's trusted roots for https; for plain addresses a context that trusts none and costs no loading."""
    return ssl.create_default_context() if address.origin.startswith("https:") else _NO_TLS


def http_request(address: Address, request: SentRequest, limits: Limits, seconds: float) -> httpx.Request:
    """A request without the cookies, credentials and headers that a client of httpx would add."""
    timeout = httpx.Timeout(seconds, connect=min(limits.connect_timeout, seconds)).as_dict()
    return httpx.Request(
        request.method,
        address.origin + request.target,
        headers=list(request.headers),
        content=request.body,
        extensions={"timeout": timeout},
    )


class CollectedBody:
    """The body of an answer as it comes in, never more than the bound."""

    def __init__(self, response: httpx.Response, limits: Limits) -> None:
        """Raises ProtocolViolation for an answer that need not be read at all."""
        self._response = response
        self._most = limits.max_answer_bytes
        self._parts: list[bytes] = []
        self._size = 0
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise ProtocolViolation("the answer is compressed, unasked", status=response.status_code)
        length = response.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > self._most):
            raise self._too_large()

    @property
    def is_too_large(self) -> bool:
        """True from the first byte beyond the bound."""
        return self._size > self._most

    def add(self, part: bytes) -> bool:
        """False when there is no use in reading on."""
        self._size += len(part)
        if not self.is_too_large:
            self._parts.append(part)
        return not self.is_too_large

    def answer(self) -> ReceivedAnswer:
        """The whole answer. Raises ProtocolViolation when it was too large."""
        if self.is_too_large:
            raise self._too_large()
        headers: Mapping[str, str] = dict(self._response.headers)
        return ReceivedAnswer(self._response.status_code, headers, b"".join(self._parts))

    def _too_large(self) -> ProtocolViolation:
        return ProtocolViolation(f"the answer is larger than {self._most} bytes", status=self._response.status_code)


def failure(error: BaseException) -> GatewayError:
    """The name of what went wrong below. Raise it outside of the `except` block: it must not carry the other along."""
    was_sent = not isinstance(error, _NOT_SENT)
    if isinstance(error, _LATE):
        return Unreachable("timed_out", was_sent=was_sent)
    if not was_sent:
        return Unreachable("unreachable", was_sent=False, reason=_system_reason(error))
    if isinstance(error, httpcore.RemoteProtocolError | httpx.RemoteProtocolError) and _is_no_http(error):
        return ProtocolViolation("the answer is not a whole HTTP answer")
    return Unreachable("connection_lost", was_sent=True)


def _is_no_http(error: BaseException) -> bool:
    """True when the parser refused what came; otherwise the connection ended before anything did."""
    return any(isinstance(one, h11.RemoteProtocolError) for one in _behind(error))


def _system_reason(error: BaseException) -> str | None:
    """The operating system's message, such as "Connection refused"."""
    return next((one.strerror for one in _behind(error) if isinstance(one, OSError)), None)


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that led to it; httpcore hides them from `__cause__`."""
    below: BaseException | None = error
    while below is not None:
        yield below
        below = below.__cause__ or below.__context__
