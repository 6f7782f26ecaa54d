"""Frames of HTTP/2 that a client sends without asking for anything: so many, and its connection is cut.

The library bounds the streams that are open, the size of a head and the frames that continue it. It does not bound
streams that are reset at once, settings, pings, priorities, window updates and small pieces of bodies.
"""

from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD: Final = 9
"""Bytes before each frame's payload; the first three are the length of that."""
DATA: Final = b"\0"
"""The type of frames of bodies, which follows the length."""
MAX_UNEARNED: Final = 4096
"""Frames beyond those that answers have earned: more than the bodies of all streams take."""
EARNED: Final = 256
"""Frames that each frame of an answer's body earns: those of a request with a large body, and updates of windows."""


class FrameBudget:
    """The frames of one connection. One of HTTP/1.1 has none."""

    def __init__(self) -> None:
        self._start = b""
        self._head = b""
        self._skip = 0
        self.is_http2: bool | None = None
        """None before the first bytes have told."""
        self._left = MAX_UNEARNED

    @property
    def is_spent(self) -> bool:
        """True once there have been too many."""
        return self._left < 0

    def earn(self, sent: bytes) -> None:
        """Bytes are sent to the client: a frame of an answer's body earns."""
        if self.is_http2 and sent[3:4] == DATA:
            self._left = min(MAX_UNEARNED, self._left + EARNED)

    def count(self, data: bytes) -> None:
        """Count the frames that begin in bytes from the client."""
        if self.is_http2 is None:
            data = self._begin(data)
        if not self.is_http2:
            return
        at = 0
        while at < len(data) and not self.is_spent:
            skipped = min(self._skip, len(data) - at)
            self._skip -= skipped
            at += skipped
            taken = data[at : at + HEAD - len(self._head)]
            self._head += taken
            at += len(taken)
            if len(self._head) == HEAD:
                self._skip = int.from_bytes(self._head[:3], "big")
                self._head = b""
                self._left -= 1

    def _begin(self, data: bytes) -> bytes:
        """Tell HTTP/2 by the first bytes; the bytes behind them."""
        self._start += data
        if self._start.startswith(PREFACE):
            self.is_http2 = True
        elif not PREFACE.startswith(self._start):
            self.is_http2 = False
        rest = self._start[len(PREFACE) :]
        if self.is_http2 is not None:
            self._start = b""
        return rest
