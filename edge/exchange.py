"""One connection to the client socket, and one exchange on it after another.

A request is one write. The gateway gives every answer a length and sends nothing chunked
(frontend/http/answers.py); an answer in another form ends the connection.
"""

import re
from collections.abc import AsyncIterator
from typing import Final

import trio

from edge.heads import Headers

MAX_ANSWER_HEAD: Final = 64 * 1024
PART: Final = 64 * 1024
PART_SECONDS: Final = 30.0
"""For each part of a body, in either direction."""
_NAME: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_HEAD: Final = re.compile(rb"HTTP/1\.1 ([2-5][0-9]{2}) [^\r\n]*+\r\n((?:" + _NAME + rb":[\t -~\x80-\xff]*+\r\n)*+)\r\n")
_FIELD: Final = re.compile(rb"(" + _NAME + rb"):[ \t]*+([^\r]*+)\r\n")
_LENGTH: Final = re.compile(rb"[0-9]{1,12}")


class BrokenExchange(Exception):
    """The gateway closed the connection before the answer's end, or sent no answer of HTTP."""


class GatewayConnection:
    """A connection. After an answer whose body was read whole it serves again."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._rest = b""
        """The part of the answer's body that came with the head."""
        self._left = 0
        self._is_whole = False
        self._kept_at = 0.0
        self.status = 0
        self.headers: Headers = []

    async def ask(self, method: bytes, target: bytes, headers: Headers, body: bytes, seconds: float) -> None:
        """Send a request and read the head of its answer. Raises BrokenExchange, trio.TooSlowError."""
        self._is_whole = False
        lines = [b"%s %s HTTP/1.1\r\n" % (method, target)]
        lines += [b"%s: %s\r\n" % field for field in headers]
        try:
            with trio.fail_after(PART_SECONDS):
                await self._stream.send_all(b"".join((*lines, b"\r\n", body)))
            with trio.fail_after(seconds):
                await self._read_head()
        except trio.BrokenResourceError:
            raise BrokenExchange from None

    async def parts(self) -> AsyncIterator[bytes]:
        """The answer's body. Raises BrokenExchange, trio.TooSlowError."""
        if self._rest:
            self._left -= len(self._rest)
            yield self._rest
        while self._left > 0:
            try:
                with trio.fail_after(PART_SECONDS):
                    part = await self._stream.receive_some(PART)
            except trio.BrokenResourceError:
                raise BrokenExchange from None
            if not part:
                raise BrokenExchange
            self._left -= len(part)
            yield bytes(part)
        if self._left < 0:
            raise BrokenExchange
        self._is_whole = True

    def keep(self) -> bool:
        """True if another exchange may follow; the gateway has not said that it ends the connection."""
        self._kept_at = trio.current_time()
        return self._is_whole and all(name.lower() != b"connection" for name, _ in self.headers)

    def is_usable(self, seconds: float) -> bool:
        """True if it has been kept for at most so long, and the gateway has not closed it."""
        return trio.current_time() - self._kept_at < seconds and not self._stream.socket.is_readable()

    def close(self) -> None:
        """Close it."""
        self._stream.socket.close()

    async def _read_head(self) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            part = await self._stream.receive_some(PART)
            received += part
            if not part or len(received) > MAX_ANSWER_HEAD + PART:
                raise BrokenExchange
        head = _HEAD.match(received)
        if head is None:
            raise BrokenExchange
        self.status = int(head[1])
        self.headers = _FIELD.findall(head[2])
        lengths = [value for name, value in self.headers if name.lower() == b"content-length"]
        if len(lengths) != 1 or _LENGTH.fullmatch(lengths[0]) is None:
            raise BrokenExchange
        self._left, self._rest = int(lengths[0]), received[head.end() :]
