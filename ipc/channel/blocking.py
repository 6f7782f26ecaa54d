"""The blocking end of a channel: for processes that do one thing at a time (workers, template, policy).

One stream socket, frames of one union in each direction, every message that is received or sent held against its
session table.
"""

import socket
from collections import deque
from typing import Any, Generic, TypeVar

from ipc.channel.fds import ANCILLARY_BYTES, RECEIVE_FLAGS, close_all, unpack_into
from ipc.channel.framing import Decoder, FrameError, encode_frame
from ipc.channel.protocol_states import Table, states_of
from ipc.messages.message import Message

M = TypeVar("M", bound=Message)

_CHUNK = 65536


class ChannelClosed(Exception):
    """The peer closed the channel between two frames."""


class FrameCut(FrameError):
    """The stream ended inside a frame: the peer died while it sent."""

    def __init__(self) -> None:
        super().__init__("stream ended inside a frame")


class BlockingChannel(Generic[M]):
    """Receives messages of `union` as `table` allows, sends what the opposite table allows.

    Descriptors that came along wait in `fds`, oldest first. Caps are in bytes of a frame.
    """

    def __init__(self, sock: socket.socket, union: Any, *, table: Table, cap_in: int, cap_out: int) -> None:
        self._sock = sock
        self._decoder: Decoder[M] = Decoder(union, cap_in)
        self._session, self._sending = states_of(table)
        self._cap_out = cap_out
        self.fds: deque[int] = deque()

    def fileno(self) -> int:
        """For select and poll."""
        return self._sock.fileno()

    @property
    def state(self) -> str:
        """The state for what it receives."""
        return self._session.state

    def send(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send one message whole, with descriptors.

        Raises FrameError over the cap and ProtocolError for a message that its state does not allow: nothing is sent
        then. OSError when the peer is gone.
        """
        frame = encode_frame(message, self._cap_out)
        self._sending.accept(message)
        if fds:
            sent = socket.send_fds(self._sock, [frame], list(fds))
            frame = frame[sent:]
        if frame:
            self._sock.sendall(frame)

    def begin(self, message: Message) -> memoryview:
        """Send as much of a message as the socket takes at once; the rest is for `finish`. Raises as `send` does."""
        frame = encode_frame(message, self._cap_out)
        self._sending.accept(message)
        try:
            sent = self._sock.send(frame, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        return memoryview(frame)[sent:]

    def finish(self, rest: memoryview) -> None:
        """Send what `begin` left. Raises OSError."""
        if rest:
            self._sock.sendall(rest)

    def offer(self, message: Message) -> bool:
        """Send a small message if the socket takes it at once; False: nothing was sent. Raises as `send` does."""
        frame = encode_frame(message, self._cap_out)
        self._sending.accept(message)
        try:
            sent = self._sock.send(frame, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        self.finish(memoryview(frame)[sent:])
        return True

    def receive(self) -> M:
        """Wait for the next message.

        Raises ChannelClosed at an end between frames, FrameError inside one, ProtocolError for a message that the
        session table does not allow, TimeoutError when the socket has a timeout.
        """
        while (message := self.pending()) is None:
            self.fill()
        return message

    def pending(self) -> M | None:
        """Next message that has been received already, or None. Raises FrameError, ProtocolError."""
        message = self._decoder.next_message()
        if message is not None:
            self._session.accept(message)
        return message

    def fill(self) -> None:
        """One read from the socket. Raises ChannelClosed or FrameError at the end of the stream."""
        data, ancillary, flags, _ = self._sock.recvmsg(_CHUNK, ANCILLARY_BYTES, RECEIVE_FLAGS)
        unpack_into(self.fds, ancillary, flags)
        if not data:
            if self._decoder.is_empty:
                raise ChannelClosed
            raise FrameCut
        self._decoder.feed(data)

    def close(self) -> None:
        """Close the socket and every descriptor that was not taken."""
        close_all(self.fds)
        self._sock.close()
