"""A body that had not arrived whole with its head: read from the wire when, and only if, the handler asks.

Owns the caps and the deadline of that reading. Never holds more than the cap and one read of a body in memory.
"""

import trio

from frontend.errors import GateError
from frontend.http.answers import CONTINUE
from frontend.http.chunks import ChunkedBody
from frontend.http.heads import RequestHead, bad_request
from frontend.http.wire import TooLate, Wire

MAX_SKIPPED_BYTES = 64 * 1024
"""An unread body of at most this announced size is skipped to keep the connection; any other closes it."""


class StreamedBody:
    """The rest of one request on the wire."""

    __slots__ = ("_deadline", "_decoder", "_error", "_expected", "_length", "_seconds", "_whole", "_wire")

    def __init__(self, wire: Wire, head: RequestHead, seconds: float) -> None:
        self._wire = wire
        self._length = None if head.is_chunked else head.length
        self._expected = head.expects_continue
        self._seconds = seconds
        self._deadline: float | None = None
        self._decoder: ChunkedBody | None = None
        self._error: GateError | None = None
        self._whole: bytes | None = None

    @property
    def length(self) -> int | None:
        """See Request.body_length."""
        return self._length

    @property
    def is_whole(self) -> bool:
        """True when the next byte on the wire belongs to the next request."""
        return self._whole is not None

    @property
    def may_be_skipped(self) -> bool:
        """True when the client will send the rest unasked, in time as far as is known, and it is little."""
        if self._error is not None and self._error.code != "body_too_large":
            return False
        return self._length is not None and self._length <= MAX_SKIPPED_BYTES and not self._expected

    async def read(self, cap: int) -> bytes:
        """See Request.read_body."""
        if self._error is not None:
            raise self._error
        if self._length is not None and self._length > cap:
            raise self._fail(GateError("body_too_large"))
        try:
            return await self._arrived() if self._length is not None else await self._decoded(cap)
        except GateError as error:
            raise self._fail(error) from None
        except TooLate:
            raise self._fail(GateError("request_timeout")) from None
        except OSError as error:
            raise self._fail(bad_request("connection lost inside the body")) from error

    async def skip(self) -> bool:
        """Read and drop a body that may be skipped; False when it does not come."""
        try:
            await self._arrived()
        except (GateError, TooLate, OSError):
            return False
        return True

    def abandon(self) -> None:
        """The answer is out: a reader of this request gets no more bytes, which are the next request's now."""
        self._error = self._error or bad_request("read after the answer")

    def _fail(self, error: GateError) -> GateError:
        self._error = error
        return error

    async def _arrived(self) -> bytes:
        if self._whole is None:
            length = self._length or 0
            buffer = self._wire.buffer
            while len(buffer) < length:
                await self._more()
            self._whole = bytes(memoryview(buffer)[:length])
            del buffer[:length]
        return self._whole

    async def _decoded(self, cap: int) -> bytes:
        if self._whole is None:
            if self._decoder is None:
                self._decoder = ChunkedBody(cap)
            while not self._decoder.feed(self._wire.buffer):
                await self._more()
            self._whole = bytes(self._decoder.body)
        if len(self._whole) > cap:
            raise GateError("body_too_large")
        return self._whole

    async def _more(self) -> None:
        if self._deadline is None:
            self._deadline = trio.current_time() + self._seconds
        if self._expected:
            self._expected = False
            await self._wire.send(CONTINUE, self._seconds)
        if not await self._wire.read_before(self._deadline):
            raise bad_request("connection ended inside the body")
