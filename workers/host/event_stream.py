"""Server-sent events (WHATWG HTML, 9.2) as they come: pieces of bytes in, the data of each message out.

Keeps no more than the event that has begun; the reader of the body bounds its bytes, and the number of events is
bounded here. Reconnects never.
"""

import codecs
import re
from collections.abc import Callable

from workers.host.meter import UPSTREAM, HostError

MAX_EVENTS = 256
"""Messages of one stream, before the one that is waited for."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventStream:
    """One stream. `is_wanted` is given the data of each message, and is True for the one that ends the reading."""

    def __init__(self, is_wanted: Callable[[bytes], bool]) -> None:
        self._is_wanted = is_wanted
        self._rest = bytearray()
        self._searched = 0
        self._has_begun = False
        self._ended_in_cr = False
        self._data: list[bytes] = []
        self._event = b""
        self._events = 0

    def feed(self, piece: bytes) -> bool:
        """Take the next piece of the stream; True once the wanted message has come. Raises HostError too-large."""
        if self._ended_in_cr and piece:  # its line feed belongs to the line that was read already
            piece = piece.removeprefix(b"\n")
            self._ended_in_cr = False
        self._rest += piece
        begin = 0
        while (end := _LINE_END.search(self._rest, max(begin, self._searched))) is not None:
            line = bytes(self._rest[begin : end.start()]).removeprefix(b"" if self._has_begun else codecs.BOM_UTF8)
            self._has_begun = True
            begin = end.end()
            self._ended_in_cr = end.group() == b"\r" and begin == len(self._rest)
            if self._line(line):
                return True
        del self._rest[:begin]
        self._searched = len(self._rest)
        return False

    def _line(self, line: bytes) -> bool:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        return False

    def _dispatch(self) -> bool:
        data, event = b"\n".join(self._data), self._event
        self._data, self._event = [], b""
        if not data or event not in (b"", b"message"):
            return False
        self._events += 1
        if self._events > MAX_EVENTS:
            raise HostError("too-large", f"{UPSTREAM}'s answer is too large: more than {MAX_EVENTS} messages")
        return self._is_wanted(data)
