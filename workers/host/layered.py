"""TLS for the upstream inside TLS for the egress proxy, as a stream like a socket's.

The library's own sockets wrap a socket of the system and nothing else, so that here what is agreed on inside goes
through memory. Guarantees what those do: no wait outlives the time that was set, and an end without close_notify is an
error, never the end of a body. Deals with one connection; knows no names but the one to verify.
"""

import ssl
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")

READ_BYTES = 16 * 1024
"""Read from the outer stream at once: a record of TLS."""


class Stream(Protocol):
    """The part of a connection that a conversation uses."""

    def fileno(self) -> int:
        """Descriptor of the socket below."""

    def settimeout(self, seconds: float | None, /) -> None:
        """For each operation from now on; 0: one that would wait raises BlockingIOError or SSLWantReadError."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option of the socket below."""

    def sendall(self, data: bytes | memoryview, /) -> None:
        """Send everything. Raises OSError."""

    def recv(self, count: int, /) -> bytes:
        """Up to `count` bytes; b"" at a proper end. Raises OSError."""

    def close(self) -> None:
        """Without waiting for the other side."""


class Layered:
    """See Stream."""

    def __init__(self, outer: Stream, tls: ssl.SSLContext, name: str) -> None:
        self._outer = outer
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._inner = tls.wrap_bio(self._arrived, self._leaving, server_hostname=name)
        self._until: float | None = None
        self._is_waiting = True

    def fileno(self) -> int:
        """Descriptor of the socket below both layers."""
        return self._outer.fileno()

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option of the socket below both layers."""
        self._outer.setsockopt(level, option, value)

    def settimeout(self, seconds: float | None, /) -> None:
        """For all that the next operations do together; 0: without waiting."""
        self._is_waiting = seconds != 0
        self._until = None if seconds is None else time.monotonic() + seconds

    def do_handshake(self) -> None:
        """Agree on TLS, and verify who is there. Raises OSError."""
        self._driven(self._inner.do_handshake)

    def sendall(self, data: bytes | memoryview, /) -> None:
        """Send everything. Raises OSError."""
        rest = memoryview(data)
        while rest:
            part = rest
            rest = rest[self._driven(lambda: self._inner.write(part)) :]  # noqa: B023 (called at once)

    def recv(self, count: int, /) -> bytes:
        """Up to `count` bytes; b"" at a proper end. Raises OSError."""
        try:
            return self._driven(lambda: self._inner.read(count))
        except ssl.SSLZeroReturnError:
            return b""

    def close(self) -> None:
        """Both layers, without waiting for the other side."""
        self._outer.close()

    def _driven(self, act: Callable[[], T]) -> T:
        """Do it, with as much of the outer stream as it needs."""
        while True:
            try:
                done = act()
            except ssl.SSLWantReadError:
                self._send()
                self._outer.settimeout(self._left())
                data = self._outer.recv(READ_BYTES)
                if data:
                    self._arrived.write(data)
                else:
                    self._arrived.write_eof()
                continue
            self._send()
            return done

    def _send(self) -> None:
        if self._leaving.pending:
            self._outer.settimeout(self._left())
            self._outer.sendall(self._leaving.read())

    def _left(self) -> float | None:
        if not self._is_waiting:
            return 0
        if self._until is None:
            return None
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
