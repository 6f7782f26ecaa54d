"""A server that answers what no gateway would: each way of misbehaving is a function that plays one connection."""

import contextlib
import gzip
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

DRIP_SECONDS = 0.02
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
Play = Callable[["Connection"], None]


@dataclass
class Connection:
    """One connection and its first request."""

    sock: socket.socket
    over: threading.Event
    request: bytes = b""

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def drip(self, first: bytes, piece: bytes) -> None:
        """`first`, then a piece now and then, until the test is over or the client has gone."""
        self.send(first)
        while not self.over.wait(DRIP_SECONDS):
            self.send(piece)

    @property
    def is_read(self) -> bool:
        """True once the head and the body that it announces are here. A close before that breaks the client's write."""
        head, end, body = self.request.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        return bool(end) and len(body) >= (int(length[1]) if length else 0)

    @property
    def token(self) -> str:
        """The client's credentials."""
        return self._header(b"authorization").removeprefix("DPoP ")

    @property
    def proof(self) -> str:
        """The client's proof."""
        return self._header(b"dpop")

    def _header(self, name: bytes) -> str:
        lines = self.request.split(b"\r\n")
        return next(line.partition(b": ")[2].decode() for line in lines if line.lower().startswith(name + b":"))


@dataclass
class HostileGateway:
    """A listening server; every connection is played the same way."""

    url: str
    requests: list[bytes] = field(default_factory=list)


def head(status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str) -> Play:
    """One well-formed answer."""
    return lambda connection: connection.send(head(status, kind, Content_Length=str(len(body)), **headers) + body)


def _huge(connection: Connection) -> None:
    connection.send(head(Connection="close"))
    with contextlib.suppress(OSError):
        while not connection.over.is_set():
            connection.send(b" " * 65536)


SILENT: Play = lambda connection: connection.over.wait()  # type: ignore[assignment]  # noqa: E731
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LATE: dict[str, Play] = {
    "says nothing": SILENT,
    "drips its head": lambda c: c.drip(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "drips its body": lambda c: c.drip(head(Content_Length="1000000"), b" "),
    "chunks without end": lambda c: c.drip(head(Transfer_Encoding="chunked"), b"1\r\n \r\n"),
    "is about to continue for ever": lambda c: c.drip(CONTINUE, CONTINUE),
}
"""Ways to keep a client waiting."""

LOST: dict[str, Play] = {
    "hangs up": lambda c: None,
    "hangs up within its head": lambda c: c.send(b"HTTP/1.1 200 OK\r\nContent-"),
}
"""Ways to go away."""

WRONG: dict[str, Play] = {
    "speaks another protocol": lambda c: c.send(b"\x15\x03\x03\x00\x02\x02\x46"),
    "answers garbage": lambda c: c.send(b"\x00\xff" * 300 + b"\r\n\r\n"),
    "hangs up within its body": lambda c: c.send(head(Content_Length="100") + b"{"),
    "says two lengths": lambda c: c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"),
    "says a length below zero": lambda c: c.send(head(Content_Length="-1") + b"{}"),
    "sends a head without end": lambda c: c.send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40_000),
    "promises too much": lambda c: c.send(head(Content_Length="99999999999999999999")),
    "sends too much": _huge,
    "redirects": whole(b"{}", "302 Found", Location="http://127.0.0.1:1/elsewhere"),
    "redirects what is posted": whole(b"{}", "307 Temporary Redirect", Location="http://127.0.0.1:1/elsewhere"),
    "switches protocols": lambda c: c.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    "has nothing to say": lambda c: c.send(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "answers a page": whole(b"<html>", kind="text/html"),
    "answers a page as an error": whole(b"<html>", "502 Bad Gateway", "text/html"),
    "answers no JSON": whole(b"{"),
    "answers deep JSON": whole(b"[" * 100_000),
    "answers a long number": whole(b"1" * 10_000),
    "answers NaN": whole(b'{"a": NaN}'),
    "answers two names alike": whole(b'{"status": "ok", "status": "ok"}'),
    "answers another shape": whole(b"[]"),
    "answers other types": whole(json.dumps({"status": 1, "draining": "yes", "version": None}).encode()),
    "answers an error without form": whole(b'"no"', "403 Forbidden"),
    "answers bytes that are no text": whole(b'{"status": "\xff"}'),
    "compresses": whole(gzip.compress(b" " * 10_000_000), Content_Encoding="gzip"),
}
"""Ways to answer that the interface does not have."""


@contextmanager
def hostile_gateway(
    play: Play, unix_path: str | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[HostileGateway]:
    """Serve until the block ends, on TCP or on a Unix socket."""
    over = threading.Event()
    with socket.socket(socket.AF_UNIX if unix_path else socket.AF_INET) as listener:
        listener.bind(unix_path if unix_path else ("127.0.0.1", 0))
        listener.listen()
        url = (
            f"unix://{unix_path}" if unix_path else f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
        )
        server = HostileGateway(url)
        players: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                if over.is_set():
                    sock.close()
                    return
                players.append(
                    threading.Thread(target=_play, args=(play, Connection(sock, over), server.requests, tls))
                )
                players[-1].start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server
        finally:
            over.set()
            with socket.socket(listener.family) as waker:
                waker.connect(listener.getsockname())
            for one in (thread, *players):
                one.join(60)


def _play(play: Play, connection: Connection, requests: list[bytes], tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: connection.sock.close())
        connection.sock.settimeout(60)
        if tls is not None:
            connection.sock = tls.wrap_socket(connection.sock, server_side=True)
        while not connection.is_read:
            data = connection.sock.recv(65536)
            if not data:
                return
            connection.request += data
        requests.append(connection.request)
        play(connection)
        connection.sock.shutdown(socket.SHUT_WR)
