"""Frames: a 4-byte big-endian length, then msgpack of one tagged, frozen struct.

Pure: bytes in, messages out, no I/O. Both ends of every channel use this one decoder, so a peer's bytes are
parsed in exactly one place. Unknown fields, unknown tags, oversized and half frames are refused.
"""

from typing import Any, Generic, TypeVar

import msgspec

from ipc.limits import FRAME_HEADER_BYTES

M = TypeVar("M")

_encoder = msgspec.msgpack.Encoder()


class FrameError(Exception):
    """The peer's bytes are not a message of this direction. The peer can't be trusted any further."""


def encode_frame(message: object, cap: int) -> bytes:
    """Return header and body of one frame.

    Raises FrameError when the body is larger than `cap` bytes: what we send obeys the same caps as what we accept. So
    too for half a character or a number of more than 64 bits, which msgpack has no form for.
    """
    try:
        body = _encoder.encode(message)
    except (UnicodeEncodeError, OverflowError) as error:
        raise FrameError(f"{type(message).__name__} can't be encoded: {type(error).__name__}") from None
    if len(body) > cap:
        raise FrameError(f"{type(message).__name__} of {len(body)} bytes exceeds the cap of {cap}")
    return len(body).to_bytes(FRAME_HEADER_BYTES, "big") + body


class Decoder(Generic[M]):
    """Accumulates bytes of one direction of one channel and hands out whole messages, in order."""

    def __init__(self, union: Any, cap: int) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(union, strict=True)
        self._cap = cap
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """True between frames: an end of stream here cuts nothing."""
        return not self._buffer

    def feed(self, data: bytes) -> None:
        """Append what was received. Raises FrameError as soon as a header announces more than the cap."""
        self._buffer += data
        self._announced()

    def _announced(self) -> int | None:
        if len(self._buffer) < FRAME_HEADER_BYTES:
            return None
        size = int.from_bytes(self._buffer[:FRAME_HEADER_BYTES], "big")
        if size > self._cap:
            raise FrameError(f"frame of {size} bytes exceeds the cap of {self._cap}")
        return size

    def next_message(self) -> M | None:
        """Return the next whole message, or None when more bytes are needed. Raises FrameError."""
        size = self._announced()
        if size is None or len(self._buffer) < FRAME_HEADER_BYTES + size:
            return None
        body = bytes(self._buffer[FRAME_HEADER_BYTES : FRAME_HEADER_BYTES + size])
        del self._buffer[: FRAME_HEADER_BYTES + size]
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"not a message of this direction: {error}") from None
