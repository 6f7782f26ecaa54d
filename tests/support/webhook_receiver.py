"""A real receiver of webhooks on loopback: remembers every delivery, and answers as a test has told it to.

Plain sockets and threads, so that it can also misbehave. Bounded in time: whatever waits is let go at the end.
"""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

SECONDS = 300.0
"""After this long a script ends by itself."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived; names of headers in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """The types of its events."""
        return str(self.json["type"])


@dataclass
class Receiver:
    """Where it listens, what arrived, and what it answers: `answers` in turn, then `answer`."""

    address: str
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    answers: list["Answer"] = field(default_factory=list)
    answer: "Answer" = field(default_factory=lambda: says(200))
    stop: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    """The condition that `holds` waits for."""
    tls: ssl.SSLContext | None = None

    def of(self, kind: str) -> list[Received]:
        """Deliveries of one kind."""
        return [one for one in self.received if one.kind == kind]

    @property
    def ids(self) -> list[str]:
        """`webhook-id` of each delivery, in the order of their arrival."""
        return [one.headers["webhook-id"] for one in self.received]


Answer = Callable[[socket.socket, Receiver], None]


def says(status: int, *headers: str, body: bytes = b"{}") -> Answer:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}", "", ""]
    return sends("\r\n".join(lines).encode() + body)


def sends(data: bytes) -> Answer:
    """These bytes, and the end."""
    return lambda sock, _: sock.sendall(data)


def redirects(to: str) -> Answer:
    """A redirect."""
    return says(307, f"Location: {to}")


def holds(status: int = 200) -> Answer:
    """Answer nothing until it is released."""

    def answer(sock: socket.socket, receiver: Receiver) -> None:
        receiver.let_go.wait(SECONDS)
        says(status)(sock, receiver)

    return answer


def drips(start: bytes, more: bytes) -> Answer:
    """For ever a little more."""

    def answer(sock: socket.socket, receiver: Receiver) -> None:
        sock.sendall(start)
        while not receiver.stop.wait(0.02):
            sock.sendall(more)

    return answer


def floods(start: bytes) -> Answer:
    """More than anybody wants, as fast as it is taken."""

    def answer(sock: socket.socket, receiver: Receiver) -> None:
        sock.sendall(start)
        while not receiver.stop.is_set():
            sock.sendall(b"x" * 65536)

    return answer


def hangs_up(sock: socket.socket, receiver: Receiver) -> None:
    """No answer at all."""


def _serve(sock: socket.socket, receiver: Receiver) -> None:
    with suppress(OSError):
        sock.settimeout(SECONDS)
        if receiver.tls is not None:
            sock = receiver.tls.wrap_socket(sock, server_side=True)
    with sock, suppress(OSError):
        with sock.makefile("rb") as stream:
            line = stream.readline().decode("latin-1").strip()
            headers = {}
            while field := stream.readline().decode("latin-1").strip():
                name, _, value = field.partition(":")
                assert name.lower() not in headers, f"{name} came twice"
                headers[name.lower()] = value.strip()
            length = int(headers.get("content-length", 0))
            body = stream.read(length)
        if not line or len(body) < length:
            return  # the sender hung up midway
        answer = receiver.answers.pop(0) if receiver.answers else receiver.answer
        receiver.received.append(Received(line, headers, body))
        answer(sock, receiver)
        sock.shutdown(socket.SHUT_WR)


def _accept(listener: socket.socket, receiver: Receiver) -> None:
    with suppress(OSError):
        while True:
            sock, _ = listener.accept()
            receiver.connections += 1
            threading.Thread(target=_serve, args=(sock, receiver), daemon=True).start()


@contextmanager
def webhook_receiver(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve until the block ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        receiver = Receiver(f"127.0.0.1:{listener.getsockname()[1]}", tls=tls)
        thread = threading.Thread(target=_accept, args=(listener, receiver))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.stop.set()
            receiver.let_go.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)
