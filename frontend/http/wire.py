"""One connected socket with its unparsed bytes: the only place of the skin that reads, writes and waits.

Every wait has a deadline or can be interrupted. Reads and writes are tried on the socket itself first, so that a
request whose bytes are there and an answer that fits the socket's buffer cost one system call each and no task switch.
Never interprets a byte.
"""

import socket
from contextlib import suppress

import trio

READ_BYTES = 65536


class TooLate(Exception):
    """The peer did not send, or take, its bytes in time."""


Interrupted = trio.ClosedResourceError
"""Raised in a wait that `Wire.interrupt` ended; the socket is as it was."""


class Wire:
    """Bytes in and out of one non-blocking stream socket. Owned by one task."""

    __slots__ = ("_socket", "buffer")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self.buffer = bytearray()

    def take_what_is_there(self) -> bool:
        """Read once without waiting; True when something came. Never raises."""
        with suppress(OSError):
            data = self._socket.recv(READ_BYTES)
            self.buffer += data
            return bool(data)
        return False

    async def wait_and_read(self) -> bool:
        """Wait for bytes, without a deadline of its own; False at the end of the stream.

        Raises OSError, and Interrupted when another task calls `interrupt` before bytes have come.
        """
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                data = self._socket.recv(READ_BYTES)
            except BlockingIOError:
                continue
            self.buffer += data
            return bool(data)

    def interrupt(self) -> None:
        """End the wait that another task is in. One whose bytes have come ends with them."""
        trio.lowlevel.notify_closing(self._socket)

    async def read_before(self, deadline: float) -> bool:
        """Like wait_and_read; raises TooLate when the deadline (trio clock) passes first."""
        with trio.CancelScope(deadline=deadline):
            return await self.wait_and_read()
        raise TooLate

    async def send(self, data: bytes | memoryview, seconds: float) -> None:
        """Send everything. Raises TooLate when the peer has not taken it in `seconds`, OSError when it is gone."""
        sent = self.send_now(data)
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        with trio.move_on_after(seconds):
            while rest:
                await trio.lowlevel.wait_writable(self._socket)
                rest = rest[self.send_now(rest) :]
        if rest:
            raise TooLate

    def send_now(self, data: bytes | memoryview) -> int:
        """Send what fits without waiting, return how much that was. Raises OSError."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def linger(self, seconds: float) -> None:
        """End our side and swallow what the peer still sends, so that closing does not take the answer from it."""
        with suppress(OSError), trio.move_on_after(seconds):
            self._socket.shutdown(socket.SHUT_WR)
            while await self.wait_and_read():
                self.buffer.clear()

    def close(self, *, at_once: bool = False) -> None:
        """Close the socket; `at_once` throws away what the kernel still holds for the peer (TCP)."""
        if at_once and self._socket.family != socket.AF_UNIX:
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.close()
