"""Request heads: from bytes to method, target, headers and the framing of the body. Pure, no I/O.

h11 does the parsing; what it lets pass and another server might read differently is refused here, before and after it:
bare line ends, folded lines, control characters, two lengths, a length beside a transfer coding (RFC 9112 §6.3, §11.2).
Never tells the client what it sent: reasons are fixed texts.
"""

import re

import h11
import msgspec

from frontend.errors import GateError

MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers together, with the empty line."""
MAX_HEADERS = 100

_ORDINARY = bytes([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])
_FIRST_BYTES = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*")
_ABSOLUTE_TARGET = re.compile(r"https?://[^/?#@]+([/?].*)?", re.IGNORECASE)


class Head(msgspec.Struct, frozen=True):
    """One parsed head. `length` is the announced size of the body in bytes; unused when `is_chunked`."""

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    length: int
    is_chunked: bool
    keeps_alive: bool
    expects_continue: bool


def bad_request(reason: str) -> GateError:
    """400 for what is not a request; `reason` is ours, never the client's bytes."""
    return GateError("bad_request", cause=reason, reason=reason)


def head_size(buffer: bytearray, searched: int) -> int:
    """Size of the head at the front of a buffer that is not empty, or 0 when more bytes are needed.

    `searched` bytes have been looked at before. Raises GateError: headers_too_large, or bad_request as soon as it is
    plain that this will not become a head.
    """
    end = buffer.find(b"\r\n\r\n", max(0, searched - 3), MAX_HEAD_BYTES)
    if end >= 0:
        return end + 4
    if buffer[0] not in _FIRST_BYTES:
        raise bad_request("not HTTP")
    if len(buffer) >= MAX_HEAD_BYTES:
        raise GateError("headers_too_large")
    if buffer.count(b"\n", searched) != buffer.count(b"\r\n", max(0, searched - 1)):
        raise bad_request("a line does not end in CR LF")
    return 0


def parse_head(head: bytes) -> Head:
    """Parse one head, empty line included. Raises GateError: bad_request, headers_too_large."""
    lines = _count_lines(head)
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    parser.receive_data(head)
    try:
        event = parser.next_event()
    except h11.RemoteProtocolError:
        raise bad_request("malformed request line or header") from None
    if type(event) is not h11.Request or event.http_version not in (b"1.1", b"1.0") or event.method == b"CONNECT":
        raise bad_request("unsupported protocol version or method")
    headers = [(name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers]
    if len(headers) != lines - 2:
        # h11 joins folded lines (RFC 9112 §5.2 lets a server refuse them) and merges equal lengths.
        raise bad_request("folded header line, or more than one Content-Length")
    fields = _combined(headers)
    is_current = event.http_version == b"1.1"
    is_chunked = "transfer-encoding" in fields
    length = _content_length(head, fields)
    if is_chunked and (length is not None or not is_current):
        raise bad_request("Transfer-Encoding beside Content-Length, or in HTTP/1.0")
    if not _HOST.fullmatch(fields.get("host", "")):
        raise bad_request("malformed Host")
    path, query = _split_target(event.target.decode("ascii"))
    return Head(
        method=event.method.decode("ascii"), path=path, query=query, headers=headers, length=length or 0,
        is_chunked=is_chunked,
        keeps_alive=is_current and not ("connection" in fields and _has_token(fields["connection"], "close")),
        expects_continue=is_current and "expect" in fields and _has_token(fields["expect"], "100-continue"),
    )  # fmt: skip


def _count_lines(head: bytes) -> int:
    lines = head.count(b"\r\n")
    if lines - 2 > MAX_HEADERS:
        raise GateError("headers_too_large")
    # What is left without ordinary bytes must be those line ends and nothing else.
    if head.translate(None, _ORDINARY) != b"\r\n" * lines:
        raise bad_request("control character, or a line does not end in CR LF")
    return lines


def _combined(headers: list[tuple[str, str]]) -> dict[str, str]:
    fields = dict(headers)
    if len(fields) != len(headers):
        fields = {}
        for name, value in headers:
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def _content_length(head: bytes, fields: dict[str, str]) -> int | None:
    if "content-length" not in fields:
        return None
    # h11 reduces a list of equal lengths to one, so only the raw bytes show that there was a list.
    lowered = head.lower()
    start = lowered.find(b"\r\ncontent-length:")
    if b"," in lowered[start : lowered.find(b"\r\n", start + 2)]:
        raise bad_request("more than one Content-Length")
    return int(fields["content-length"])


def _has_token(value: str, token: str) -> bool:
    return any(part.strip(" \t").lower() == token for part in value.split(","))


def _split_target(target: str) -> tuple[str, str]:
    if not target.startswith("/"):
        match = _ABSOLUTE_TARGET.fullmatch(target)
        if match is None:
            raise bad_request("malformed request target")
        # The authority is as irrelevant as Host: proofs are bound to the configured public address.
        rest = match[1] or "/"
        target = rest if rest.startswith("/") else f"/{rest}"
    if "#" in target:
        raise bad_request("fragment in the request target")
    path, _, query = target.partition("?")
    return path, query
