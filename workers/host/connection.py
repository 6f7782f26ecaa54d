"""One outgoing connection: to the address that was checked, with TLS for the name that was allowed, within a deadline.

Guarantees that no wait outlives the deadline and that certificates are verified against the system's authorities and
the name. Never resolves a name.
"""

import select
import socket
import ssl
import time
from collections.abc import Sequence

from ipc.network.tls import client_context, problem_of
from workers.host.layered import Layered, Stream
from workers.host.meter import UPSTREAM, HostError

MAX_ADDRESSES = 4
"""How many addresses of a name are tried."""
LAST_BYTES = 64 * 1024
"""The end of a longer request is sent by itself, after a look for an answer that came too early."""


def make_tls(authorities: str | None = None) -> ssl.SSLContext:
    """Client context: TLS 1.2 or later, system authorities or those of a file alone, names checked. Made once, in the
    template. Raises OSError for a file without certificates."""
    context = client_context(authorities)
    # SECURITY: early releases of Python 3.11 ask OpenSSL to take a connection that was cut for one that was closed, and
    # half an answer for a whole one.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    context.set_alpn_protocols(["http/1.1"])
    return context


class UpstreamConnection:
    """A connected stream whose every operation ends at `deadline` (time.monotonic()). `peer` is who is there."""

    def __init__(self, stream: Stream, deadline: float, peer: str = UPSTREAM) -> None:
        self._stream = stream
        self._deadline = deadline
        self._peer = peer
        self.has_heard = False
        """True once a byte has come."""
        self.is_early = False
        """True if something came before everything was sent."""

    def send(self, data: bytes) -> None:
        """Send everything. Raises HostError."""
        last = max(0, len(data) - LAST_BYTES)
        view = memoryview(data)
        if last:
            self._send(view[:last])
            self.is_early = _is_readable(self._stream)
        self._send(view[last:])

    def _send(self, data: memoryview) -> None:
        with _translated(f"sending to {self._peer}", self._peer):
            self._stream.settimeout(seconds_left(self._deadline, self._peer))
            self._stream.sendall(data)

    def confirm_at_once(self) -> None:
        """Confirm each packet of the answer when it comes.

        The kernel does so on a new connection alone. Later it waits 40 ms, and with it an upstream that writes head and
        body in two packets and sends the second once the first is confirmed (Nagle's algorithm).
        """
        with _translated(f"sending to {self._peer}", self._peer):
            self._stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def receive(self, count: int) -> bytes:
        """Up to `count` bytes; b"" at a proper end. Raises HostError."""
        with _translated(f"waiting for {self._peer}'s answer", self._peer):
            self._stream.settimeout(seconds_left(self._deadline, self._peer))
            data = self._stream.recv(count)
        self.has_heard = self.has_heard or bool(data)
        return data


def is_quiet(stream: Stream) -> bool:
    """True while nothing has come: no byte, no end, no error. A stream that is not quiet can't be used any more."""
    stream.settimeout(0)
    try:
        stream.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False
    return False


def _is_readable(stream: Stream) -> bool:
    """True if something has come, even if it is of TLS alone."""
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def connect(
    addresses: Sequence[tuple[str, int]], deadline: float, tls: ssl.SSLContext | None, name: str
) -> Stream:  # fmt: skip
    """Connect to the first address that answers, with TLS for `name` unless `tls` is None. Raises HostError."""
    return reached(dial(addresses, deadline, UPSTREAM), deadline, tls, name)


def reached(stream: Stream, deadline: float, tls: ssl.SSLContext | None, name: str) -> Stream:
    """The stream to an upstream, with TLS for `name` unless `tls` is None. Raises HostError, with the stream closed."""
    if tls is None:
        return stream
    try:
        return secured(stream, deadline, tls, name, UPSTREAM)
    except BaseException:
        stream.close()
        raise


def secured(stream: Stream, deadline: float, tls: ssl.SSLContext, name: str, peer: str) -> Stream:
    """The same stream with TLS for `name`, inside that of the proxy where there is one. Raises HostError."""
    with _translated(f"agreeing on TLS with {peer}", peer):
        stream.settimeout(seconds_left(deadline, peer))
        if isinstance(stream, socket.socket) and not isinstance(stream, ssl.SSLSocket):
            # An end without close_notify must not pass for the end of a body.
            return tls.wrap_socket(stream, server_hostname=name, suppress_ragged_eofs=False)
        layered = Layered(stream, tls, name)
        layered.settimeout(seconds_left(deadline, peer))
        layered.do_handshake()
        return layered


def dial(addresses: Sequence[tuple[str, int]], deadline: float, peer: str) -> socket.socket:
    """Connect to the first address that answers; MAX_ADDRESSES are tried. Raises HostError."""
    addresses = addresses[:MAX_ADDRESSES]
    for position, (address, port) in enumerate(addresses):
        share = seconds_left(deadline, peer) / (len(addresses) - position)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            stream = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        except OSError:  # this host knows no addresses of that family
            continue
        try:
            stream.settimeout(share)
            stream.connect((address, port))
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            stream.close()
            continue
        return stream
    seconds_left(deadline, peer)
    raise HostError("unavailable", f"{peer} can't be reached", retryable=True)


def seconds_left(deadline: float, peer: str) -> float:
    """Until the deadline. Raises HostError timeout when nothing is left."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise HostError("timeout", f"{peer} did not answer in time")
    return left


class _translated:  # noqa: N801 - used as a with statement
    """Turns what the operating system or TLS says into provider errors. SECURITY: never with addresses or bytes."""

    def __init__(self, what: str, peer: str) -> None:
        self._what = what
        self._peer = peer

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, TimeoutError):
            raise HostError("timeout", f"{self._peer} did not answer in time") from None
        if isinstance(error, ssl.SSLCertVerificationError):
            raise HostError("unavailable", f"{self._peer}'s certificate {problem_of(error)}") from None
        if isinstance(error, OSError):
            raise HostError("unavailable", f"the connection broke while {self._what}") from None
