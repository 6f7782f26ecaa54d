"""The trio end of a channel: for the supervisor and the front, which wait for many things at once.

Never imported by workers, template or policy, which must stay free of an event loop.
"""

import socket
from collections import deque
from typing import Any, Generic, TypeVar

import trio

from ipc.channel.blocking import ChannelClosed, FrameCut
from ipc.channel.fds import ANCILLARY_BYTES, RECEIVE_FLAGS, close_all, packed, unpack_into
from ipc.channel.framing import Decoder, encode_frame
from ipc.channel.protocol_states import Table, states_of
from ipc.messages.message import Message

M = TypeVar("M", bound=Message)

_CHUNK = 65536


class TrioChannel(Generic[M]):
    """Receives messages of `union` as `table` allows, sends what the opposite table allows.

    One task receives; any number may send (frames never mix). With `carries_fds` descriptors travel along and wait in
    `fds`, oldest first; without, plain reads are used. Caps are in bytes of a frame.
    """

    def __init__(
        self, sock: socket.socket, union: Any, *, table: Table, cap_in: int, cap_out: int,
        carries_fds: bool = False,
    ) -> None:  # fmt: skip
        sock.setblocking(False)
        self._plain = sock
        self._decoder: Decoder[M] = Decoder(union, cap_in)
        self._session, self._sending = states_of(table)
        self._cap_out = cap_out
        self._carries_fds = carries_fds
        self._send_lock = trio.StrictFIFOLock()
        self._is_broken = False
        self.fds: deque[int] = deque()

    async def send(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send one message whole; without a wait where the socket takes it at once, which is nearly always.

        Raises FrameError over the cap and ProtocolError for a message that its state does not allow: nothing is sent
        then. OSError when the peer is gone, or another task closes the channel. Cancelled in the middle of a frame the
        channel is broken for good, since the peer could not find the next frame: every later send raises OSError.
        """
        await self._write(self._frame(message), fds)

    def _frame(self, message: Message) -> bytes:
        """The frame of a message that is sent now. Raises FrameError and ProtocolError as `send` does."""
        frame = encode_frame(message, self._cap_out)
        self._sending.accept(message)
        return frame

    async def _write(self, frames: bytes, fds: tuple[int, ...] = ()) -> None:
        """Send whole frames, never mixed with those of other tasks. Raises and breaks as `send` does."""
        # The lock costs more than a small write, and only a sender that waits in the middle of its frames needs it.
        sent = 0
        if self._send_lock.locked():
            await self._send_lock.acquire()
        else:
            sent = self._begin(frames, fds)
            if sent == len(frames):
                return
            self._send_lock.acquire_nowait()
        try:
            sent = sent or self._begin(frames, fds)
            rest = memoryview(frames)
            while sent < len(frames):
                self._is_broken = sent > 0
                await self._writable()
                sent += self._send_now(rest[sent:], () if sent else fds)
            self._is_broken = False
        finally:
            self._send_lock.release()

    async def _writable(self) -> None:
        """Wait for room. Raises OSError, also when another task closes the channel: senders do not catch trio's error,
        which is no OSError."""
        try:
            await trio.lowlevel.wait_writable(self._plain)
        except trio.ClosedResourceError:
            raise BrokenPipeError("the channel was closed here") from None

    def _begin(self, frames: bytes, fds: tuple[int, ...]) -> int:
        """The first write of some frames; bytes that the socket took. Raises OSError, on a broken channel too."""
        if self._is_broken:
            raise BrokenPipeError("an earlier frame was cut")
        return self._send_now(frames, fds)

    def _send_now(self, data: bytes | memoryview, fds: tuple[int, ...]) -> int:
        """Bytes that the socket took, 0 when it takes none now. Descriptors go with the first byte."""
        try:
            return self._plain.sendmsg([data], packed(fds)) if fds else self._plain.send(data)
        except BlockingIOError:
            return 0

    def receive_now(self) -> M | None:
        """The next message if it is here; None if it is not, or not whole. Raises as `receive` does."""
        while (message := self._decoder.next_message()) is None:
            try:
                self._feed()
            except BlockingIOError:
                return None
        self._session.accept(message)
        return message

    async def receive(self) -> M:
        """Wait for the next message.

        Raises ChannelClosed at an end between frames, FrameError inside one, ProtocolError for a message that the
        session table does not allow, OSError for a broken socket, trio.ClosedResourceError when it is closed here.
        """
        while (message := self._decoder.next_message()) is None:
            await self._readable()
            try:
                self._feed()
            except BlockingIOError:
                continue
        self._session.accept(message)
        return message

    async def _readable(self) -> None:
        """Wait for bytes, or the end. Raises trio.ClosedResourceError when the socket is, or was, closed here."""
        if self._plain.fileno() < 0:
            raise trio.ClosedResourceError
        await trio.lowlevel.wait_readable(self._plain)

    def _feed(self) -> None:
        """One read. Raises BlockingIOError when nothing waits, ChannelClosed and FrameCut at the end of the stream."""
        data = self._read_with_fds() if self._carries_fds else self._plain.recv(_CHUNK)
        if not data:
            if self._decoder.is_empty:
                raise ChannelClosed
            raise FrameCut
        self._decoder.feed(data)

    def _read_with_fds(self) -> bytes:
        data, ancillary, flags, _ = self._plain.recvmsg(_CHUNK, ANCILLARY_BYTES, RECEIVE_FLAGS)
        unpack_into(self.fds, ancillary, flags)
        return data

    def close(self) -> None:
        """Close the socket and every descriptor that was not taken; a task that waits here gets ClosedResourceError."""
        close_all(self.fds)
        if self._plain.fileno() >= 0:
            trio.lowlevel.notify_closing(self._plain)
        self._plain.close()
