"""Bytes that clients of an edge send by hand, with TLS and without HTTP library, and HTTP/2 frame by frame."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import h2.config
import h2.connection
import h2.events

from tests.support.edge_process import Edge

Headers = list[tuple[str, str]]
SECONDS = 60
LEASE: Headers = [(":method", "POST"), (":path", "/v1/leases"), (":scheme", "https"), (":authority", "gate.example")]


@contextmanager
def connected(edge: Edge, *protocols: str, context: ssl.SSLContext | None = None) -> Iterator[ssl.SSLSocket]:
    """A connection on which TLS has been agreed on."""
    context = context or edge.trusting()
    context.set_alpn_protocols(protocols or ("http/1.1",))
    with (
        socket.create_connection(("127.0.0.1", edge.port), SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as sock,
    ):
        yield sock


def answered(sock: socket.socket, sent: bytes) -> bytes:
    """All that comes back until the server closes the connection, or half a second without more after an answer."""
    received = b""
    with contextlib.suppress(OSError):
        sock.sendall(sent)
    with contextlib.suppress(OSError):
        while data := sock.recv(65536):
            received += data
            sock.settimeout(0.5)
    sock.settimeout(SECONDS)
    return received


def statuses(received: bytes) -> list[int]:
    """The statuses of all answers of HTTP/1.1, but 100."""
    lines = [part.split(b" ", 1)[0] for part in received.split(b"HTTP/1.1 ")[1:]]
    return [int(line) for line in lines if line != b"100"]


class Frames:
    """A client of HTTP/2 that sends what no client should."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        config = h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="utf-8"
        )
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        """Send what has been said."""
        self.sock.sendall(self.h2.data_to_send())

    def outcome(self) -> int | None:
        """The status of the first answer; None if the stream or the connection ends without one."""
        while True:
            data = self.sock.recv(65536)
            for event in self.h2.receive_data(data) if data else []:
                if isinstance(event, h2.events.ResponseReceived):
                    return next(int(value) for name, value in event.headers if name in (b":status", ":status"))
                if isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                    return None
            if not data:
                return None
            self.flush()
