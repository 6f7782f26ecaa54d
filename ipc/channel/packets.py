"""A channel of whole packets (SOCK_SEQPACKET), of which one end may pass from a process that was killed to another.

A packet arrives whole or not at all: the process that takes the socket over reads from the beginning of a packet, never
from the middle of a frame. A message larger than a packet travels as several; the rest of one whose sender or reader
died is skipped.
"""

import socket
from typing import Any, Generic, TypeVar

import msgspec

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import Table, states_of
from ipc.messages.message import Message

M = TypeVar("M", bound=Message)

PACKET_BYTES = 65_536
"""Bytes of payload; a byte before them says which part of a message the packet is."""
_FIRST, _LAST = 1, 2

_encoder = msgspec.msgpack.Encoder()


def packet_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a fresh channel. Raises OSError."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class PacketChannel(Generic[M]):
    """Receives messages of `union` as `table` allows, sends what the opposite table allows.

    Blocks as its socket does. Caps are in bytes of a message.
    """

    def __init__(self, sock: socket.socket, union: Any, *, table: Table, cap_in: int, cap_out: int) -> None:
        self._sock = sock
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(union, strict=True)
        self._session, self._sending = states_of(table)
        self._cap_in, self._cap_out = cap_in, cap_out
        self._parts: list[bytes] = []
        self._size = 0

    def fileno(self) -> int:
        """For select and poll."""
        return self._sock.fileno()

    def send(self, message: Message) -> None:
        """Send one message whole.

        Raises FrameError over the cap and ProtocolError for a message that its state does not allow: nothing is sent
        then. OSError when the peer is gone, BlockingIOError when it does not take more now.
        """
        body = _encoder.encode(message)
        if len(body) > self._cap_out:
            raise FrameError(f"{type(message).__name__} of {len(body)} bytes exceeds the cap of {self._cap_out}")
        self._sending.accept(message)
        if len(body) <= PACKET_BYTES:
            self._sock.send(b"\x03" + body)
            return
        for start in range(0, len(body), PACKET_BYTES):
            part = (_FIRST if not start else 0) | (_LAST if start + PACKET_BYTES >= len(body) else 0)
            self._sock.send(part.to_bytes(1, "big") + body[start : start + PACKET_BYTES])

    def receive(self, flags: int = 0) -> M | None:
        """Take one packet: the message that it completes, or None. `flags` are those of recv(2).

        Raises ChannelClosed when the peer is gone, FrameError for no message, ProtocolError for one of another
        state, OSError, and BlockingIOError when nothing waits.
        """
        packet = self._sock.recv(PACKET_BYTES + 2, flags)
        if not packet:
            raise ChannelClosed
        if len(packet) > PACKET_BYTES + 1:
            raise FrameError("a packet larger than any may be")
        part = packet[0]
        if part > _FIRST | _LAST or not (part & _LAST or len(packet) > PACKET_BYTES):
            # SECURITY: parts that hold little would make a long list before they reach the cap.
            raise FrameError("a packet that is no part of a message")
        if part & _FIRST:
            self._parts, self._size = [], 0
        elif not self._parts:
            return None  # the rest of a message whose beginning another process has taken
        self._parts.append(packet[1:])
        self._size += len(packet) - 1
        if self._size > self._cap_in:
            raise FrameError(f"a message exceeds the cap of {self._cap_in}")
        if not part & _LAST:
            return None
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        try:
            message = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"not a message of this direction: {error}") from None
        self._session.accept(message)
        return message

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()
