"""The trio end of a channel: for the supervisor and the front, which wait for many things at once.

Never imported by workers, template or policy, which must stay free of an event loop.
"""

import socket
from collections import deque
from typing import Any, Generic, TypeVar

import trio

from ipc.blocking import ChannelClosed
from ipc.fds import ANCILLARY_BYTES, RECEIVE_FLAGS, close_all, packed, unpack_into
from ipc.framing import Decoder, FrameError, encode_frame
from ipc.messages import Message
from ipc.sessions import Session, Table

M = TypeVar("M", bound=Message)

_CHUNK = 65536


class TrioChannel(Generic[M]):
    """Sends any message, receives messages of `union`. One task receives; any number may send (frames never mix).

    With `carries_fds` descriptors travel along and wait in `fds`, oldest first; without, plain reads are used.
    """

    def __init__(
        self, sock: socket.socket, union: Any, *, table: Table, start: str, cap_in: int, cap_out: int,
        carries_fds: bool = False,
    ) -> None:  # fmt: skip
        sock.setblocking(False)
        self._plain = sock
        self._decoder: Decoder[M] = Decoder(union, cap_in)
        self._session = Session(table, start)
        self._cap_out = cap_out
        self._carries_fds = carries_fds
        self._send_lock = trio.StrictFIFOLock()
        self._is_broken = False
        self.fds: deque[int] = deque()

    @property
    def session(self) -> Session:
        """The receiving session; its owner moves it when it sends what the table answers."""
        return self._session

    async def send(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send one message whole; without a wait where the socket takes it at once, which is nearly always.

        Raises FrameError over the cap and OSError when the peer is gone. Cancelled in the middle of a frame the
        channel is broken for good, since the peer could not find the next frame: every later send raises OSError.
        """
        frame = memoryview(encode_frame(message, self._cap_out))
        try:
            self._send_lock.acquire_nowait()
        except trio.WouldBlock:
            await self._send_lock.acquire()
        try:
            if self._is_broken:
                raise BrokenPipeError("an earlier frame was cut")
            rest = frame[self._send_now(frame, fds) :]
            while rest:
                self._is_broken = len(rest) < len(frame)
                await trio.lowlevel.wait_writable(self._plain)
                rest = rest[self._send_now(rest, fds if len(rest) == len(frame) else ()) :]
            self._is_broken = False
        finally:
            self._send_lock.release()

    def _send_now(self, data: memoryview, fds: tuple[int, ...]) -> int:
        """Bytes that the socket took, 0 when it takes none now. Descriptors go with the first byte."""
        try:
            return self._plain.sendmsg([data], packed(fds)) if fds else self._plain.send(data)
        except BlockingIOError:
            return 0

    async def receive(self) -> M:
        """Wait for the next message.

        Raises ChannelClosed at an end between frames, FrameError inside one, ProtocolError for a message that the
        session table does not allow, OSError for a broken socket, trio.ClosedResourceError when it is closed here.
        """
        while (message := self._decoder.next_message()) is None:
            await trio.lowlevel.wait_readable(self._plain)
            try:
                data = self._read_with_fds() if self._carries_fds else self._plain.recv(_CHUNK)
            except BlockingIOError:
                continue
            if not data:
                if self._decoder.is_empty:
                    raise ChannelClosed
                raise FrameError("stream ended inside a frame")
            self._decoder.feed(data)
        self._session.accept(message)
        return message

    def _read_with_fds(self) -> bytes:
        data, ancillary, flags, _ = self._plain.recvmsg(_CHUNK, ANCILLARY_BYTES, RECEIVE_FLAGS)
        unpack_into(self.fds, ancillary, flags)
        return data

    def close(self) -> None:
        """Close the socket and every descriptor that nobody took; a task that waits here gets ClosedResourceError."""
        close_all(self.fds)
        if self._plain.fileno() >= 0:
            trio.lowlevel.notify_closing(self._plain)
        self._plain.close()
