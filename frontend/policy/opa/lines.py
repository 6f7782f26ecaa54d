"""Connections to an OPA: few, kept open, each with one question at a time, and answers of bounded size.

Guarantees that a question goes only over a connection that `prove` has accepted, where one is given: a process that was
restarted has new connections alone, so what was proven of one holds for as long as that one lasts. A connection that
was used before and breaks is no news, and the question goes over a new one: asking twice changes nothing. Has no
deadlines: the caller gives all of it one. SECURITY: nothing that is raised repeats the token. Imported only where an
OPA decides, for what its library would cost every other start.
"""

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpcore
import trio

from frontend.http.client_bodies import AnswerTooLarge, OutgoingBody, read_at_most
from frontend.policy.opa.wire import NotUnderstood, OpaAnswer
from ipc.limits import MAX_VERDICT_FRAME
from ipc.network.tls import client_context
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, look_at, read_private

MAX_LINES: Final = 32
"""The most connections of one front."""
_BROKEN = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError, RuntimeError)
"""The last: the system gives no thread to look a name up in."""
_MAX_TOKEN = 8192


class OpaUnreached(Exception):
    """There is no answer: no connection, or a broken one. The message is a sentence."""


class OpaConnection:
    """One connection. `proven` is what `prove` has left there."""

    def __init__(self, connection: httpcore.AsyncHTTPConnection) -> None:
        self.connection = connection
        self.proven = ""
        self.has_answered = False


class Token:
    """The bearer token in a private file, read again when the file has changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, ...] | None = None
        self._token = ""

    def header(self) -> tuple[bytes, bytes]:
        """The header that shows it. Raises KeyFileError."""
        seen = look_at(self._file)
        if seen is None or seen != self._seen:
            self._token, self._seen = _token_in(self._file), seen
        return b"authorization", b"Bearer " + self._token.encode("ascii")


def _token_in(file: Path) -> str:
    try:
        token = read_private(file).decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not 0 < len(token) <= _MAX_TOKEN or not token.isprintable() or " " in token:
        raise PrivateFileError(f"{file}: must be one line of printable ASCII without spaces.", Exit.CONFIG)
    return token


Prove = Callable[[OpaConnection], Awaitable[None]]


class OpaConnections:
    """All connections of one front to the OPA at this URL (`http://…`, `https://…`, `unix:///PATH`).

    Raises KeyFileError for a token that can't be used.
    """

    def __init__(self, url: str, token: Path | None) -> None:
        self._socket = url.removeprefix("unix://") if url.startswith("unix://") else None
        parts = urlsplit("http://localhost" if self._socket is not None else url)
        self._base = parts.path
        self._url = httpcore.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target="/")
        self._host = parts.netloc
        self._tls: ssl.SSLContext | None = client_context() if parts.scheme == "https" else None
        self._token = None if token is None else Token(token)
        self._idle: list[OpaConnection] = []
        self._places = trio.CapacityLimiter(MAX_LINES)
        if self._token is not None:
            self._token.header()

    async def ask(self, method: str, target: str, body: bytes = b"", prove: Prove | None = None) -> OpaAnswer:
        """Put one question and read its answer. Raises OpaUnreached, NotUnderstood, and what `prove` raises."""
        async with self._places:
            while True:
                line = await self._take()
                was_open = line.has_answered
                is_kept = False
                try:
                    if prove is not None:
                        await prove(line)
                    answer = await self.exchange(line, method, target, body)
                    is_kept = True
                    return answer
                except OpaUnreached:
                    if not was_open:
                        raise
                finally:
                    if is_kept:
                        self._idle.append(line)
                    else:
                        await line.connection.aclose()

    async def exchange(self, line: OpaConnection, method: str, target: str, body: bytes = b"") -> OpaAnswer:
        """The same over one connection. Raises OpaUnreached, NotUnderstood."""
        url = httpcore.URL(
            scheme=self._url.scheme, host=self._url.host, port=self._url.port, target=self._base + target
        )  # fmt: skip
        sent = OutgoingBody(body) if body else None
        try:
            asked = line.connection.stream(method, url, headers=self._headers(method, body), content=sent)
            async with asked as response:
                content = await read_at_most(response, MAX_VERDICT_FRAME)
        except AnswerTooLarge:
            raise NotUnderstood(f"OPA's answer has more than {MAX_VERDICT_FRAME} bytes") from None
        except PrivateFileError as error:
            raise OpaUnreached(str(error)) from None
        except _BROKEN as error:
            raise OpaUnreached(_told(error)) from None
        line.has_answered = True
        return OpaAnswer(response.status, content)

    async def close(self) -> None:
        """Give up what is open."""
        while self._idle:
            await self._idle.pop().connection.aclose()

    async def _take(self) -> OpaConnection:
        """The connection that was used last, or a new one."""
        while self._idle:
            line = self._idle.pop()
            if line.connection.is_idle() and not line.connection.has_expired():
                return line
            await line.connection.aclose()
        return OpaConnection(httpcore.AsyncHTTPConnection(self._url.origin, ssl_context=self._tls, uds=self._socket))

    def _headers(self, method: str, body: bytes) -> list[tuple[bytes, bytes]]:
        kind = b"application/json-patch+json" if method == "PATCH" else b"application/json"
        headers = [(b"host", self._host.encode("ascii")), (b"accept", b"application/json")]
        if body:
            headers += [(b"content-type", kind), (b"content-length", str(len(body)).encode("ascii"))]
        if self._token is not None:
            headers.append(self._token.header())
        return headers


def _told(error: Exception) -> str:
    """Describe the error without the data that was sent."""
    if isinstance(error, httpcore.ConnectError):
        return f"no connection to OPA: {error}" if str(error) else "no connection to OPA"
    return "the connection to OPA ended without a whole answer in HTTP"
