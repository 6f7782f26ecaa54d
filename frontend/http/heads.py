"""Request heads: from bytes to method, target, headers and the framing of the body. Pure, no I/O.

A head is accepted only if all of it is the grammar of RFC 9112 §3 and §5, without the latitude that document leaves to
servers: no bare line end, no folded line, no white space before a colon, no control character; and only if its body can
be framed in one way: no two lengths, no length beside a transfer coding (§6.3, §11.2). The tests hold it to h11.
Never tells the client what it sent: reasons are fixed texts.
"""

import re

import msgspec

from frontend.errors import GateError

MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers together, with the empty line."""
MAX_HEADERS = 100

# Matched against ISO 8859-1 text, so one character is one byte. Nothing here can backtrack: `++` and `*+` give nothing
# back, which bounds the time by the length of the head.
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_REQUEST_LINE = re.compile(rf"({_NAME}) ([!-~]++) HTTP/(1\.[01])\r\n")
_FIELD_LINE = re.compile(rf"(?<=\r\n)({_NAME}):([\t -~\x80-\xff]*+)\r\n")
_NOT_TEXT = re.compile(r"[^\t\r\n -~\x80-\xff]|\r(?!\n)|(?<!\r)\n")
_LENGTH = re.compile(r"[0-9]{1,20}")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*")
_ABSOLUTE_TARGET = re.compile(r"https?://[^/?#@]+([/?].*)?", re.IGNORECASE)
_FIRST_BYTES = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ONCE = ("host", "content-length", "transfer-encoding")
"""Fields of which a second one could be read in place of the first."""


class RequestHead(msgspec.Struct, frozen=True):
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


def parse_head(head: bytes) -> RequestHead:
    """Parse one head, empty line included. Raises GateError: bad_request, headers_too_large."""
    count = head.count(b"\r\n") - 2
    if count > MAX_HEADERS:
        raise GateError("headers_too_large")
    text = head.decode("latin-1")
    start = _REQUEST_LINE.match(text)
    pairs = _FIELD_LINE.findall(text, start.end()) if start is not None else []
    # SECURITY: every field found has a line end of its own and begins behind another, so when there are as many as
    # there are lines between the first and the empty one, no byte of the head has been passed over.
    if start is None or len(pairs) != count or not head.endswith(b"\r\n\r\n"):
        raise _malformed(text, start)
    method, target, version = start.groups()
    if method == "CONNECT":
        raise bad_request("unsupported method")
    headers = [(name.lower(), value.strip(" \t")) for name, value in pairs]
    fields = dict(headers)
    if len(fields) != len(headers):
        fields = _combined(headers)
    is_current = version == "1.1"
    length, is_chunked = _framing(fields, is_current=is_current)
    host = fields.get("host")
    if not (_HOST.fullmatch(host) if host is not None else not is_current):
        raise bad_request("malformed Host")
    path, query = _split_target(target)
    return RequestHead(
        method=method, path=path, query=query, headers=headers, length=length, is_chunked=is_chunked,
        keeps_alive=is_current and not ("connection" in fields and _has_token(fields["connection"], "close")),
        expects_continue=is_current and "expect" in fields and _has_token(fields["expect"], "100-continue"),
    )  # fmt: skip


def _malformed(text: str, start: re.Match[str] | None) -> GateError:
    if _NOT_TEXT.search(text):
        return bad_request("control character, or a line does not end in CR LF")
    if start is None:
        return bad_request("malformed request line, or a version other than HTTP/1.0 and HTTP/1.1")
    return bad_request("malformed or folded header line")


def _combined(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers by name, values of one name joined. Raises GateError where joining could hide a second reading."""
    fields: dict[str, str] = {}
    for name, value in headers:
        if name not in fields:
            fields[name] = value
        elif name in _ONCE:
            raise bad_request("more than one Host, Content-Length or Transfer-Encoding")
        else:
            fields[name] = f"{fields[name]}, {value}"
    return fields


def _framing(fields: dict[str, str], *, is_current: bool) -> tuple[int, bool]:
    """Announced size of the body in bytes, and whether it comes in chunks instead."""
    length, coding = fields.get("content-length"), fields.get("transfer-encoding")
    if coding is not None:
        if length is not None or not is_current:
            raise bad_request("Transfer-Encoding beside Content-Length, or in HTTP/1.0")
        if coding.lower() != "chunked":
            raise bad_request("Transfer-Encoding other than chunked")
        return 0, True
    if length is None:
        return 0, False
    if not _LENGTH.fullmatch(length):
        raise bad_request("malformed Content-Length")
    return int(length), False


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
