"""An HTTP transport whose reads and writes all end at one moment, however slowly the other side drips. Blocking.

httpx bounds each read by itself; a server that sends a byte a second would hold a caller for ever. Here every operation
on the socket gets what is left until the caller's deadline. No retries, no proxies, no redirects. The deadline
does not bound the operating system's resolver.
"""

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import httpcore
import httpx

from gateway_client.wire.address import Address

KEEPALIVE_SECONDS = 30.0
"""Below the gateway's own (75 s): a connection that the other side is about to close is not used again."""
_deadline: ContextVar[float] = ContextVar("gateway_client_deadline")


@contextlib.contextmanager
def until(deadline: float) -> Iterator[None]:
    """Bound everything that the transport does in this block (`deadline` on time.monotonic)."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextlib.contextmanager
def _bounded(
    sock: socket.socket, timeout: float | None, late: type[Exception], broken: type[Exception]
) -> Iterator[None]:
    """One operation on a socket, its failures in the words of httpcore."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise late("the deadline has passed")
    sock.settimeout(left if timeout is None else min(left, timeout))
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:
        raise broken(str(error)) from error


class _Stream(httpcore.NetworkStream):
    """A connected socket; each operation ends by the deadline of the `until` block that it runs in."""

    def __init__(self, sock: socket.socket, live: "WeakSet[_Stream]") -> None:
        self._sock = sock
        self._live = live
        live.add(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _bounded(self._sock, timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return self._sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            with _bounded(self._sock, timeout, httpcore.WriteTimeout, httpcore.WriteError):
                rest = rest[self._sock.send(rest) :]

    def close(self) -> None:
        self._sock.close()

    def cut(self) -> None:
        """Wake the threads that read or write here: closing the socket alone would not."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        with (
            contextlib.ExitStack() as when_it_fails,
            _bounded(self._sock, timeout, httpcore.ConnectTimeout, httpcore.ConnectError),
        ):
            when_it_fails.callback(self.close)
            wrapped = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
            when_it_fails.pop_all()
        return _Stream(wrapped, self._live)

    def get_extra_info(self, info: str) -> Any:
        if info == "socket":
            return self._sock
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        if info == "is_readable":  # the pool asks: an idle connection that can be read has ended
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return bool(poll.poll(0))
        return None


def _dialled(host: str, port: int, seconds: float) -> socket.socket:
    """Connected to the first address of the name that answers; the others share the time. Raises OSError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # of a label that is empty or too long
        raise OSError(f"{host} is no name of a host") from None
    until, failed = time.monotonic() + seconds, OSError(f"{host} has no address")
    for position, (*_, address) in enumerate(found):
        share = (until - time.monotonic()) / (len(found) - position)
        try:
            return socket.create_connection((str(address[0]), int(address[1])), max(share, 0.001))
        except OSError as error:
            failed = error
    raise failed


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self.live: WeakSet[_Stream] = WeakSet()
        self.is_closed = False

    def close(self) -> None:
        """End every connection, also those that other threads wait for or are just making."""
        self.is_closed = True
        for stream in tuple(self.live):
            stream.cut()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the pool was given none
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = _deadline.get() - time.monotonic()
        if left <= 0:
            raise httpcore.ConnectTimeout("the deadline has passed")
        try:
            sock = _dialled(host, port, left if timeout is None else min(left, timeout))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._stream(sock)

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        with contextlib.ExitStack() as when_it_fails:
            sock = when_it_fails.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with _bounded(sock, timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
                sock.connect(path)
            when_it_fails.pop_all()
        return self._stream(sock)

    def _stream(self, sock: socket.socket) -> _Stream:
        stream = _Stream(sock, self.live)
        if self.is_closed:
            stream.close()
            raise httpcore.ConnectError("the client was closed")
        return stream


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class DeadlineTransport(httpx.BaseTransport):
    """For one address. Requests must be sent inside `until`. Raises the exceptions of httpcore."""

    def __init__(self, address: Address, tls: ssl.SSLContext) -> None:
        self._backend = _Backend()
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=KEEPALIVE_SECONDS,
            uds=address.socket,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send once; the caller reads the body."""
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                target,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    def close(self) -> None:
        """Close every connection, also those that other threads wait for."""
        self._backend.close()
        self._pool.close()
