"""Bodies that come in chunks (RFC 9112 §7.1): a strict, incremental decoder. Pure, no I/O.

Our own instead of h11's, because h11 ends a trailer section at a bare line feed, where another server reads on, and
has no cap on framing: here a megabyte cut into one-byte chunks is refused early. The tests hold it against h11.
"""

import re

from frontend.errors import GateError
from frontend.http.heads import bad_request

MAX_LINE_BYTES = 512
"""One chunk-size line with its extensions, or one trailer line."""
MAX_FRAMING_BYTES = 16 * 1024
"""The most bytes of framing beyond the length of the body itself."""

# Bad whitespace before an extension is tolerated (§7.1.1), nothing after the size.
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")

_CR = b"\r"
_SIZE, _DATA, _DATA_END, _TRAILER, _DONE = range(5)


class ChunkedBody:
    """Takes bytes from the front of a buffer until the body is whole. Trailers are checked and dropped."""

    __slots__ = ("_cap", "_framing", "_left", "_state", "body")

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._state = _SIZE
        self._left = 0
        self._framing = 0
        self.body = bytearray()

    def feed(self, buffer: bytearray) -> bool:
        """Consume what belongs to this body from the front of `buffer`; True when it is whole.

        Raises GateError: body_too_large before a chunk that would pass the cap is stored, bad_request for anything
        that is not plainly a chunked body.
        """
        at = 0
        while self._state != _DONE:
            following = self._take_data(buffer, at) if self._state == _DATA else self._take_line(buffer, at)
            if following is None:
                break
            at = following
        del buffer[:at]
        return self._state == _DONE

    def _take_data(self, buffer: bytearray, at: int) -> int | None:
        if at == len(buffer):
            return None
        end = min(at + self._left, len(buffer))
        self.body += memoryview(buffer)[at:end]
        self._left -= end - at
        if not self._left:
            self._state = _DATA_END
        return end

    def _take_line(self, buffer: bytearray, at: int) -> int | None:
        end = buffer.find(b"\r\n", at, at + MAX_LINE_BYTES)
        if end < 0:
            if len(buffer) - at >= MAX_LINE_BYTES or (self._state == _DATA_END and buffer[at : at + 1] not in _CR):
                raise bad_request("malformed chunk")
            return None
        self._framing += end + 2 - at
        if self._framing > MAX_FRAMING_BYTES + len(self.body):
            raise bad_request("too little body in too many chunks")
        line = bytes(memoryview(buffer)[at:end])
        if self._state == _SIZE:
            self._begin_chunk(line)
        elif self._state == _DATA_END:
            if line:
                raise bad_request("malformed chunk")
            self._state = _SIZE
        elif not line:
            self._state = _DONE
        elif not _TRAILER_LINE.fullmatch(line):
            raise bad_request("malformed trailer")
        return end + 2

    def _begin_chunk(self, line: bytes) -> None:
        match = _SIZE_LINE.fullmatch(line)
        if match is None:
            raise bad_request("malformed chunk")
        self._left = int(match[1], 16)
        if len(self.body) + self._left > self._cap:
            raise GateError("body_too_large")
        self._state = _DATA if self._left else _TRAILER
