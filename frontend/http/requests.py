"""A request as handlers see it: method, raw path, headers, peer, and a body that is read only when asked for.

The path stays as it was sent: routing and the proof's `htu` are compared with it.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from frontend.errors import GateError
from frontend.http.peercred import PeerCredentials

MAX_BODY_BYTES = 1_048_576
"""Request body of any endpoint (docs/contract.md, "Limits", 1 MB)."""


class BodySource(Protocol):
    """Where a request's body comes from."""

    @property
    def length(self) -> int | None:
        """Bytes, as far as the client has announced them."""
        ...

    def read(self, cap: int) -> Awaitable[bytes]:
        """See Request.read_body."""
        ...


class CompleteBody:
    """A body that has arrived whole."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes = b"") -> None:
        self._data = data

    @property
    def length(self) -> int:
        """Bytes."""
        return len(self._data)

    async def read(self, cap: int) -> bytes:
        """The body. Raises GateError("body_too_large")."""
        if len(self._data) > cap:
            raise GateError("body_too_large")
        return self._data


class Request:
    """One request. Header names are lower case, values are ISO 8859-1 text, both in the order they came in."""

    __slots__ = ("_body", "_later", "headers", "listener", "method", "path", "peer", "query")

    def __init__(
        self, method: str, path: str, query: str = "", headers: list[tuple[str, str]] | None = None, *,
        peer: PeerCredentials | None = None, listener: str = "merged", body: BodySource | None = None,
        later: list[Callable[[], None]] | None = None,
    ) -> None:  # fmt: skip
        """`later` collects work to do after the answer was sent; without it nothing is put off."""
        self.method = method
        self.path = path
        """Raw, as sent, without query; begins with a slash. Printable ASCII, never percent-decoded."""
        self.query = query
        """Raw, as sent, without the question mark; empty without a query."""
        self.headers = headers if headers is not None else []
        self.peer = peer
        """Credentials of the peer on a Unix socket, None on TCP."""
        self.listener = listener
        """Kind of the socket it came in on: client, admin, merged or metrics."""
        self._body = body if body is not None else CompleteBody()
        self._later = later

    @property
    def uid(self) -> int | None:
        """The peer's, where there are credentials."""
        return None if self.peer is None else self.peer.uid

    @property
    def body_length(self) -> int | None:
        """Bytes of the body; None when it comes in chunks and its length is not known before its end."""
        return self._body.length

    def read_body(self, cap: int = MAX_BODY_BYTES) -> Awaitable[bytes]:
        """Read the whole body, at most `cap` bytes; may be asked again, from one task at a time.

        Raises GateError: body_too_large (at once when Content-Length says so), request_timeout, bad_request (bad
        framing, or the client left inside the body). After any of these the connection closes with the answer.
        """
        return self._body.read(cap)

    def after_answer(self, act: Callable[[], None]) -> None:
        """Do this once the answer was sent, or could not be. `act` does not wait and raises nothing."""
        if self._later is None:
            act()
        else:
            self._later.append(act)

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.path}>"
