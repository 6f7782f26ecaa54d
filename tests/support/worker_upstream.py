"""An upstream that answers with exact bytes, at exact moments, or not at all; with TLS when a test wants it."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.certificates import made_certificate

HOLD_SECONDS = 300.0
"""After this long what is held is answered all the same."""
Answer = Callable[[socket.socket], None]
"""Writes to the connection once a request's head has come."""


@dataclass
class Upstream:
    """Where it listens, and the bytes of every request that came."""

    address: str
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    """Connections that were accepted."""
    handshakes: int = 0
    """Handshakes of TLS that succeeded."""
    stop: threading.Event = field(default_factory=threading.Event)


def saying(data: bytes) -> Answer:
    """Answers with these bytes and closes."""
    return lambda connection: connection.sendall(data)


def ok(body: bytes = b"{}", status: str = "200 OK", more: bytes = b"") -> Answer:
    """A whole answer, after which the connection ends."""
    head = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n%s" % (status.encode(), len(body), more)
    return saying(head + b"\r\n" + body)


def lasting(body: bytes = b"{}", status: str = "200 OK", more: bytes = b"") -> Answer:
    """A whole answer, after which another request may come."""
    return saying(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status.encode(), len(body), more, body))


def dripping(head: bytes) -> Answer:
    """Sends a byte every now and then until the client hangs up: each read succeeds, the whole never does."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)

    return drip


@contextmanager
def upstream(answer: Answer, tls: ssl.SSLContext | None = None, then: Iterable[Answer] = ()) -> Iterator[Upstream]:
    """Serve until the block ends, each connection in a thread. The first request on a connection gets `answer`, each
    further one the next of `then`. All connections end with the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    up = Upstream(f"127.0.0.1:{listener.getsockname()[1]}")
    open_ones: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def converse(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.settimeout(60)
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            open_ones.append(connection)
            if up.stop.is_set():
                return
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
                up.handshakes += 1
            up.requests.append(_whole_request(connection))
            answer(connection)
            for further in then:
                if not (data := _whole_request(connection)):
                    break
                up.requests.append(data)
                further(connection)
            # A close with unread bytes would be a reset; a reset may overtake what was sent.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
        connection.close()

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            up.connections += 1
            thread = threading.Thread(target=converse, args=(connection,), daemon=True)
            thread.start()
            threads.append(thread)

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield up
    finally:
        up.stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(60)
        for connection in open_ones:
            with suppress(OSError):  # it has ended
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in threads:
            thread.join(60)


@contextmanager
def holding() -> Iterator[tuple[Upstream, threading.Event]]:
    """An upstream that answers no request before the event is set."""
    release = threading.Event()

    def answer(connection: socket.socket) -> None:
        release.wait(HOLD_SECONDS)
        ok(b"{}", "201 Created")(connection)

    with upstream(answer) as up:
        try:
            yield up, release
        finally:
            release.set()


def _whole_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length and (piece := connection.recv(65536)):
        body += piece
    return head + b"\r\n\r\n" + body


def certificate(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for `name`: (file with it, server context); beside it one with its key as well."""
    path = made_certificate(folder, name).rename(folder / f"{name}.pem")
    whole = folder / f"{name}.key.pem"
    whole.write_bytes((folder / "key.pem").read_bytes() + path.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(whole)
    return path, context
