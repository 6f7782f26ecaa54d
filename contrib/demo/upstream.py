"""The world outside: a small HTTP server that the example actions send their requests to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HELD_PATH = "/weather/tomorrow"
HOLD_SECONDS = 300.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        server = self.server
        assert isinstance(server, World)
        headers = {name.lower(): value for name, value in self.headers.items()}
        server.seen.append({"method": self.command, "path": self.path, "headers": headers, "body": body})
        if self.path == HELD_PATH:
            server.released.wait(HOLD_SECONDS)
        status = 201 if self.command == "POST" else 200
        raw = json.dumps({"path": self.path, "received": len(body)}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = _answer  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_: Any) -> None:
        """The demo tells what arrived; lines of the server would only disturb the story."""


class World(ThreadingHTTPServer):
    """Remembers what arrived."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[dict[str, Any]] = []
        self.released = threading.Event()
        """Until it is set, a request for HELD_PATH is not answered."""

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self.server_address[1]}"


@contextmanager
def world() -> Iterator[World]:
    """Serve until the block ends."""
    with World() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
