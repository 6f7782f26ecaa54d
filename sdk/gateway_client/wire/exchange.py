"""One request and one answer as values, and the rules for reading an answer. No I/O.

Guarantees that headers and bodies, which hold tokens and proofs, never show in a repr.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from gateway_client.errors import GatewayError, ProtocolViolation, error_for
from gateway_client.version import __version__
from gateway_client.wire.decoding import parse_json

USER_AGENT = f"action-gateway-client/{__version__}"
MAX_RETRY_AFTER = 3600.0
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnprovenCall:
    """A request before it is proven: the same call may be sent again with another proof.

    `path` is encoded already (see `path_of`); `body` is JSON text, None for no body; `headers` are those of this call
    alone.
    """

    method: str
    path: str
    query: str = ""
    body: bytes | None = field(default=None, repr=False)
    headers: Headers = field(default=(), repr=False)

    @property
    def target(self) -> str:
        """Path and query as they stand in the request line."""
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request as it is sent, once."""

    method: str
    target: str
    headers: Headers = field(repr=False)
    body: bytes | None = field(default=None, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that errors must not repeat: token and proof."""
        shown = (value for name, value in self.headers if name in {"Authorization", "DPoP", "Client-DPoP"})
        return tuple(value.removeprefix("DPoP ").removeprefix("Bearer ") for value in shown)


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """One whole answer; header names in lower case. `secrets`: what its request was sent with."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def json(self) -> Any:
        """The body. Raises ProtocolViolation when it is not JSON, or does not say so."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ProtocolViolation("the answer is not of type application/json", status=self.status)
        try:
            return parse_json(self.body, "the answer")
        except ProtocolViolation as error:
            error.status = self.status
            raise

    def text(self, content_type: str) -> str:
        """The body as text of this type. Raises ProtocolViolation."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != content_type:
            raise ProtocolViolation(f"the answer is not of type {content_type}", status=self.status)
        try:
            return self.body.decode()
        except UnicodeDecodeError:
            raise ProtocolViolation("the answer is not UTF-8", status=self.status) from None

    @property
    def retry_after(self) -> float | None:
        """`Retry-After` in seconds; None without it, or in another form."""
        text = self.headers.get("retry-after", "").strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            return None
        return min(float(text), MAX_RETRY_AFTER)

    def expect(self, *statuses: int) -> "ReceivedAnswer":
        """This answer, if it has one of these statuses. Raises the GatewayError that it stands for."""
        if self.status in statuses:
            return self
        raise self.error()

    def error(self) -> GatewayError:
        """The exception that this answer stands for."""
        if self.status < 400:
            what = "a redirect" if 300 <= self.status < 400 else "a status that the interface does not have"
            return ProtocolViolation(f"the answer is {what}", status=self.status)
        try:
            body = self.json()
        except ProtocolViolation as error:
            return error
        if not isinstance(body, dict):
            return ProtocolViolation("the answer is not a JSON object", status=self.status)
        return error_for(self.status, body, self.headers, retry_after=self.retry_after, secrets=self.secrets)


def path_of(*segments: str) -> str:
    """A path from its segments, each encoded. Raises ValueError for an invalid segment."""
    for segment in segments:
        if segment in {"", ".", ".."}:
            raise ValueError(f"{segment!r} is not an identifier")
    return "".join("/" + quote(segment, safe=":@*") for segment in segments)


def query_of(**parameters: str | int | None) -> str:
    """A query string of those parameters that are given."""
    return urlencode({name: value for name, value in parameters.items() if value is not None})
