"""HTTP/1.1 as a client: one request out, one response in (RFC 9112), from a stranger who may lie.

Strict where leniency is how requests are smuggled: bare line feeds, folded headers, two lengths, or a length beside a
transfer coding are refused. Every line, header block and body has a cap that is checked while reading. No I/O of its
own: bytes come from a function.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from workers.host.meter import PROXY, UPSTREAM, HostError

USER_AGENT = "action-gateway"
"""How we call ourselves."""
MAX_LINE_BYTES = 16 * 1024
MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 128
MAX_INTERIM_RESPONSES = 5
_CHUNK = 64 * 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*)")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~\x80-\xff]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_KEPT_FOR = re.compile(r"timeout=([0-9]{1,9})")

Receive = Callable[[int], bytes]
"""Up to n bytes, b"" at the end of the stream; raises HostError."""

Headers = tuple[tuple[str, str], ...]

IsEnough = Callable[[bytes], bool]
"""Is given each next piece of an event stream; True: the rest of the stream is not read. Raises HostError."""
EVENT_STREAM = "text/event-stream"


class Response(NamedTuple):
    """A response with its whole body. Header names are lower case."""

    status: int
    headers: Headers
    body: bytes
    open_seconds: float = 0.0
    """For how long another request may follow on the connection. 0: none may."""


def encode_request(method: str, path: str, headers: Headers, body: bytes) -> bytes:
    """The bytes of one request. Everything must have been checked: nothing is escaped here."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def read_response(
    receive: Receive, method: str, max_body: int, is_enough: IsEnough | None = None,
    note_answer: Callable[[], None] = lambda: None,
) -> Response:  # fmt: skip
    """The upstream's final response to a request of this method. `is_enough` ends the reading of an event stream;
    `note_answer` is called once the final head has come.

    Raises HostError: too-large beyond a cap, unavailable for what is no HTTP/1.1 response or ends early.
    """
    reader = _Reader(receive, UPSTREAM)
    version, status, headers = _final_head(reader)
    note_answer()
    if is_enough is not None and media_type(headers) == EVENT_STREAM:
        reader.is_enough = is_enough
    body = _body(reader, method, status, headers, version, max_body)
    is_over = (
        reader.is_cut
        or reader.has_more
        or reader.has_interim
        or version == b"0"
        or not _has_told_end(method, status, headers)
    )
    return Response(status, headers, body, 0.0 if is_over else _open_seconds(headers))


def media_type(headers: Headers) -> str:
    """The media type of a message's body in lower case, without its parameters; "" where it is not told."""
    told = next((value for name, value in headers if name == "content-type"), "")
    return told.partition(";")[0].strip().lower()


def read_connect_answer(receive: Receive) -> int:
    """Status of the egress proxy's final answer to CONNECT (RFC 9110 §9.3.6).

    After 2xx the stream is the tunnel, whatever lengths the head tells. No byte has been sent through it yet, so that
    none may have come either: it would not be the upstream's. Raises HostError as read_response does.
    """
    reader = _Reader(receive, PROXY)
    _, status, _ = _final_head(reader)
    if 200 <= status < 300 and reader.has_more:
        raise reader.malformed("something comes behind it")
    return status


class _Reader:
    """Lines and stretches of bytes from a stream, and what to say of `peer` when they will not do."""

    def __init__(self, receive: Receive, peer: str) -> None:
        self._receive = receive
        self._peer = peer
        self._buffer = bytearray()
        self.has_interim = False
        """True once an interim response has come."""
        self.is_enough: IsEnough | None = None
        self.is_cut = False
        """True once a piece was enough: what follows of the body is not read."""

    @property
    def has_more(self) -> bool:
        """True if bytes have arrived that were not read."""
        return bool(self._buffer)

    def malformed(self, why: str) -> HostError:
        """To be raised."""
        return HostError("unavailable", f"{self._peer}'s answer is not HTTP/1.1 as it should be: {why}")

    def too_large(self, what: str) -> HostError:
        """To be raised."""
        return HostError("too-large", f"{self._peer}'s answer is too large: {what}")

    def _fill(self) -> bool:
        data = self._receive(_CHUNK)
        self._buffer += data
        return bool(data)

    def line(self) -> bytes:
        """Up to the next CRLF, which is dropped."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE_BYTES:
                raise self.too_large("a line of its head")
            if not self._fill():
                raise self.malformed("it ends early")
        if end > MAX_LINE_BYTES:
            raise self.too_large("a line of its head")
        if self._buffer[end - 1 : end] != b"\r":
            raise self.malformed("a line does not end with CRLF")
        line = bytes(self._buffer[: end - 1])
        del self._buffer[: end + 1]
        return line

    def exactly(self, count: int) -> bytes:
        """The next `count` bytes."""
        while len(self._buffer) < count:
            if not self._fill():
                raise self.malformed("it ends early")
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def cuts(self, piece: bytes) -> bool:
        """True if the body needs no more than this next piece of it."""
        self.is_cut = self.is_enough is not None and self.is_enough(piece)
        return self.is_cut

    def rest(self, cap: int) -> bytes:
        """Everything up to the end of the stream."""
        seen = 0
        while len(self._buffer) <= cap:
            if self.is_enough is not None and self.cuts(bytes(self._buffer[seen:])):
                break
            seen = len(self._buffer)
            if not self._fill():
                break
        if len(self._buffer) > cap:
            raise self.too_large("its body")
        return bytes(self._buffer)


def _final_head(reader: _Reader) -> tuple[bytes, int, Headers]:
    """(minor version, status, headers) of the first head that is not interim."""
    for _ in range(MAX_INTERIM_RESPONSES + 1):
        version, status = _status(reader)
        headers = _headers(reader)
        if status == 101:
            raise reader.malformed("it switches protocols")
        if status >= 200:
            return version, status, headers
        reader.has_interim = True
    raise reader.malformed("it has too many interim responses")


def _status(reader: _Reader) -> tuple[bytes, int]:
    match = _STATUS_LINE.fullmatch(reader.line())
    if match is None:
        raise reader.malformed("its first line is no status line")
    return match.group(1), int(match.group(2))


def _headers(reader: _Reader) -> Headers:
    headers: list[tuple[str, str]] = []
    size = 0
    while line := reader.line():
        size += len(line)
        if size > MAX_HEADER_BYTES or len(headers) == MAX_HEADERS:
            raise reader.too_large("its head")
        header = _HEADER.fullmatch(line)
        if header is None:
            raise reader.malformed("one of its headers can't be read")
        headers.append((header.group(1).decode("ascii").lower(), header.group(2).decode("latin-1").rstrip(" \t")))
    return tuple(headers)


def _body(reader: _Reader, method: str, status: int, headers: Headers, version: bytes, cap: int) -> bytes:
    """RFC 9112 §6.3."""
    lengths = [value for name, value in headers if name == "content-length"]
    codings = [value for name, value in headers if name == "transfer-encoding"]
    if codings and (lengths or version == b"0"):
        raise reader.malformed("it has two lengths")
    if method == "HEAD" or status in (204, 304):
        return b""
    if codings:
        if [coding.lower() for coding in codings] != ["chunked"]:
            raise reader.malformed("its transfer coding is not chunked")
        return _chunked(reader, cap)
    if not lengths:
        return reader.rest(cap)
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise reader.malformed("its length can't be read")
    if int(lengths[0]) > cap:
        raise reader.too_large("its body")
    return reader.exactly(int(lengths[0]))


def _has_told_end(method: str, status: int, headers: Headers) -> bool:
    """True for an answer whose end no server can mean differently.

    SECURITY: servers that are wrong send a body with answers to HEAD, with 304, and with a 204 that has a length; what
    is left of it would pass for the next answer.
    """
    lengths = [value for name, value in headers if name == "content-length"]
    codings = [value for name, value in headers if name == "transfer-encoding"]
    if method == "HEAD" or status == 304:
        return False
    if status == 204:
        return not codings and lengths in ([], ["0"])
    return bool(codings or lengths)


def _open_seconds(headers: Headers) -> float:
    """Until a second before the upstream ends the connection, where it says when (`Keep-Alive: timeout=N`)."""
    options = ",".join(value for name, value in headers if name == "connection").lower().split(",")
    if "close" in (option.strip() for option in options):
        return 0.0
    told = [int(found[1]) for name, value in headers if name == "keep-alive" for found in _KEPT_FOR.finditer(value)]
    return max(0.0, min(told, default=float("inf")) - 1)


def _chunked(reader: _Reader, cap: int) -> bytes:
    body = bytearray()
    while True:
        match = _CHUNK_LINE.fullmatch(reader.line())
        if match is None:
            raise reader.malformed("a chunk's size can't be read")
        size = int(match.group(1), 16)
        if size == 0:
            break
        if len(body) + size > cap:
            raise reader.too_large("its body")
        piece = reader.exactly(size)
        body += piece
        if reader.cuts(piece):
            return bytes(body)
        if reader.exactly(2) != b"\r\n":
            raise reader.malformed("a chunk is longer than its size")
    _headers(reader)
    return bytes(body)
