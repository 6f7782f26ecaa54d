"""A real upstream HTTP server on loopback that remembers what it was asked, for tests only."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOLD_SECONDS = 300.0
"""After this long what waits is answered all the same."""


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: int
    """Port of the other end: each connection has its own."""

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Upstream:
    """Address and memory of the server."""

    address: str
    seen: list[Seen] = field(default_factory=list)
    handshakes: int = 0
    """Handshakes of TLS that succeeded."""
    refused: set[str] = field(default_factory=set)
    """Paths that are answered with 401, decided as the answer begins."""
    hold: threading.Event = field(default_factory=threading.Event)
    """`/wait` answers once this is set."""
    _held: dict[str, threading.Event] = field(default_factory=dict)

    def held(self, name: str) -> threading.Event:
        """`/wait/NAME` answers once this is set."""
        return self._held.setdefault(name, threading.Event())

    def release_all(self) -> None:
        """Let whatever still waits be answered."""
        for event in (self.hold, *list(self._held.values())):
            event.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets: the second would wait until the first is confirmed
    server: "_Server"

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        up = self.server.upstream
        headers = {k.lower(): v for k, v in self.headers.items()}
        up.seen.append(Seen(self.command, self.path, headers, body, self.client_address[1]))
        parts = self.path.split("?")[0].strip("/").split("/")
        status, answer = 200, {"ok": True, "path": self.path}
        if parts[0] == "status":
            status = int(parts[1])
        elif parts[0] == "bearer" and not headers.get("authorization", "").endswith(parts[1]):
            status = 401
        elif parts[0] == "slow":
            time.sleep(float(parts[1]) / 1000)
        elif parts[0] == "wait":
            (up.held(parts[1]) if len(parts) > 1 else up.hold).wait(HOLD_SECONDS)
        elif self.path == "/v1/transfers":
            status, answer = 201, {"transfer": "tr-1", "status": "accepted"}
        if self.path in up.refused:
            status = 401
        raw = json.dumps(answer).encode()
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_: Any) -> None:
        """Tests read `seen`, not lines."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    upstream: Upstream
    tls: ssl.SSLContext | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._open: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection; with TLS it agrees on it in its own thread, when it reads."""
        connection, address = super().get_request()
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self._open.add(connection)
        return connection, address

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection."""
        if isinstance(request, ssl.SSLSocket):
            request.do_handshake()
            self.upstream.handshakes += 1
        super().finish_request(request, client_address)

    def close_request(self, request: Any) -> None:
        """One connection has ended."""
        self._open.discard(request)
        super().close_request(request)

    def end_connections(self) -> None:
        """Those that clients keep, too."""
        for connection in list(self._open):
            with suppress(OSError):  # it has just ended
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client may have been killed meanwhile: tests read `seen`."""


@contextmanager
def upstream(tls: ssl.SSLContext | None = None) -> Iterator[Upstream]:
    """Serve until the block ends, and all connections with it."""
    with _Server() as server:
        server.tls = tls
        up = server.upstream = Upstream(f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield up
        finally:
            up.release_all()
            server.shutdown()
            thread.join(60)
            server.end_connections()
