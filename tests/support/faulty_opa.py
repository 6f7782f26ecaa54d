"""A proxy between a gateway and a real OPA, which misbehaves on request.

For faults that a real OPA can't be made to show. A request comes whole, is met by the fault of that moment if it is one
that the fault is for, and goes to the OPA otherwise.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.opa import Opa

LARGE = 300_000
"""Bytes: more than any answer may have."""
Fault = Callable[["FaultyOpa", socket.socket], None]


def silence(server: "FaultyOpa", client: socket.socket) -> None:
    """Take the request and say nothing, for as long as the fault lasts."""
    server.over.wait()


def saying(body: bytes, status: str = "200 OK") -> Fault:
    """An answer in HTTP with this body."""

    def said(_server: "FaultyOpa", client: socket.socket) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode("ascii") + body)

    return said


class FaultyOpa:
    """Listens on a Unix socket in `folder`."""

    def __init__(self, opa: Opa, folder: Path) -> None:
        self._opa = opa
        self._path = folder / "faulty.sock"
        self.url = f"unix://{self._path}"
        self._fault: Fault | None = None
        self._target = b""
        self.over = threading.Event()
        self.asked: list[bytes] = []
        """First lines of requests."""
        self._clients: set[socket.socket] = set()
        self._listener: socket.socket | None = None

    def listen(self) -> None:
        """Begin to take connections."""
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Take no connection, and break those that are open."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._path.unlink(missing_ok=True)
        for client in list(self._clients):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def failing(self, fault: Fault, target: bytes = b"") -> Iterator[None]:
        """Within the block requests with this in their first line or their body meet the fault."""
        self.over.clear()
        self._target, self._fault = target, fault
        try:
            yield
        finally:
            self._fault = None
            self.over.set()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._clients.add(client)
        with client, contextlib.suppress(OSError, httpx.TransportError):
            while (request := _request(client)) is not None:
                first, body = request
                self.asked.append(first)
                fault = self._fault
                if fault is not None and self._target in first + body:
                    fault(self, client)
                    break
                client.sendall(self._passed_on(first, body))
        self._clients.discard(client)

    def _passed_on(self, first: bytes, body: bytes) -> bytes:
        method, target, _ = first.decode("ascii").split(" ", 2)
        kind = "application/json-patch+json" if method == "PATCH" else "application/json"
        with self._opa.lock:
            if not self._opa.is_up:
                raise ConnectionError
            answer = self._opa.http.request(method, target, content=body, headers={"Content-Type": kind})
        length = "" if answer.status_code == 204 else f"Content-Length: {len(answer.content)}\r\n"
        head = f"HTTP/1.1 {answer.status_code} Said\r\nContent-Type: application/json\r\n{length}\r\n"
        return head.encode("ascii") + answer.content


def _request(client: socket.socket) -> tuple[bytes, bytes] | None:
    """(first line, body) of one request; None at the end."""
    seen = b""
    while b"\r\n\r\n" not in seen:
        more = client.recv(65536)
        if not more:
            return None
        seen += more
    head, _, body = seen.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        more = client.recv(65536)
        if not more:
            return None
        body += more
    return lines[0], body
