"""Answers and their bytes: what a handler returns, and the one place that writes a response head.

Every body is JSON unless an answer says otherwise, every head carries a length, so nothing is ever sent chunked.
Never lets a header value end a line: a value with a control character is refused before a byte is sent.
"""

import re
import time
from email.utils import formatdate
from http import HTTPStatus

import msgspec

from frontend.errors import GateError

JSON_TYPE = "application/json"
TRACE_HEADER = "X-Trace-Id"
"""A header of every answer."""

_UNSAFE = re.compile(r"[^\t\x20-\x7e]")
_encoder = msgspec.json.Encoder()


class Answer(msgspec.Struct, frozen=True):
    """One response. `headers` come beside Content-Type, Content-Length, Cache-Control, Date and Connection."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = JSON_TYPE


def json_answer(status: int, value: object, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """An answer whose body is `value` as JSON (anything msgspec encodes)."""
    return Answer(status, _encoder.encode(value), headers)


def error_answer(error: GateError) -> Answer:
    """The answer that the table of codes gives an error."""
    return json_answer(error.status, error.body(), error.headers())


def traced(answer: Answer, trace_id: str) -> Answer:
    """The same answer with the trace id of its request, which events and log lines have, too."""
    return msgspec.structs.replace(answer, headers=(*answer.headers, (TRACE_HEADER, trace_id)))


INTERNAL_ERROR = error_answer(GateError("internal_error"))
OVERLOADED = error_answer(GateError("overloaded"))

# Answers hold leases, receipts and approvals: no cache on the way may keep one.
_COMMON = "Cache-Control: no-store\r\nContent-Type: "
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n{_COMMON}" for status in HTTPStatus}
_JSON_HEADS = {
    status: f"{line}{JSON_TYPE}\r\nContent-Length: ".encode() for status, line in _STATUS_LINES.items() if status >= 200
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class _DateLine:
    """The Date header (RFC 9110 §6.6.1), formatted once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._line = b""

    def current(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._line = f"\r\nDate: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._line


_date = _DateLine()


def encode_answer(answer: Answer, *, without_body: bool = False, close: bool = False) -> bytes:
    """Head and body in one piece, to be sent with one call.

    `without_body` is for HEAD: the same head, Content-Length included (RFC 9110 §9.3.2). `close` adds
    `Connection: close`. Raises ValueError for a header that does not fit on one line, KeyError for an unknown status.
    """
    body = answer.body
    if answer.content_type is JSON_TYPE:
        head = _JSON_HEADS[answer.status]
    else:
        head = f"{_STATUS_LINES[answer.status]}{_safe(answer.content_type)}\r\nContent-Length: ".encode()
    extra = b"Connection: close\r\n" if close else b""
    for name, value in answer.headers:
        extra += f"{_safe(name)}: {_safe(value)}\r\n".encode()
    return b"%b%d%b%b\r\n%b" % (head, len(body), _date.current(), extra, b"" if without_body else body)


def _safe(text: str) -> str:
    if _UNSAFE.search(text):
        raise ValueError("control or non-ASCII character in an answer's header")
    return text
