"""Keep-alive connections over raw sockets, one request in flight each, and one loop that serves them all.

The loop is what a client costs: an epoll, a receive and a send an answer. It signs, parses and logs nothing
while it runs.
"""

import json
import re
import select
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from bench.identity import Identity

ANSWER_SECONDS = 60.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


Address = tuple[str, int] | str
"""Host and port, or the path of a Unix socket."""


def connected(address: Address) -> socket.socket:
    """A connected socket. Raises OSError."""
    if isinstance(address, tuple):
        sock = socket.create_connection(address, timeout=ANSWER_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(ANSWER_SECONDS)
    sock.connect(address)
    return sock


class Connection:
    """One connection with the requests it still has to send, the next one last."""

    def __init__(self, address: Address, identity: Identity) -> None:
        self.identity = identity
        self.unsent: list[bytes] = []
        self.sent_at = 0.0
        self._sock = connected(address)
        # A timeout would cost a poll before each receive and each send; the loop has one for all.
        self._sock.settimeout(None)
        self._received = b""

    def fileno(self) -> int:
        """Descriptor of the socket."""
        return self._sock.fileno()

    def send_next(self) -> None:
        """Send the next request whole: it fits into the socket's buffer."""
        request = self.unsent.pop()
        self.sent_at = time.perf_counter()
        self._sock.sendall(request)

    def answer(self) -> int | None:
        """Receive once: the answer's status when it is whole, else None. Raises ConnectionError."""
        data = self._sock.recv(16384)
        if not data:
            raise ConnectionError("the server closed the connection")
        if self._received:
            data = self._received + data
        gap = data.find(b"\r\n\r\n")
        length = _LENGTH.search(data, 0, gap + 2) if gap >= 0 else None
        if gap >= 0 and length is None:
            raise ConnectionError(f"an answer without a length: {data[:200]!r}")
        if length is None or len(data) < gap + 4 + int(length[1]):
            self._received = data
            return None
        self._received = b""
        return int(data[9:12])

    def ask(self, request: bytes) -> int:
        """Send one request and wait for its status."""
        self.unsent.append(request)
        self.send_next()
        while (code := self.answer()) is None:
            pass
        return code

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()


@dataclass
class Window:
    """The measurements of one window."""

    seconds: float = 0.0
    """From the first request to the moment when the last one was sent."""
    answered: int = 0
    """Answers within those seconds."""
    client_seconds: float = 0.0
    """Processor time of this process over all of it."""
    latencies: list[float] = field(default_factory=list)
    """Seconds of every call, those included that were still in flight at the end."""
    codes: dict[int, int] = field(default_factory=dict)


def exchange(connections: list[Connection], seconds: float) -> Window:
    """Keep one request in flight a connection until the time is over or one of them has none left, then await the rest.

    So all connections are busy for as long as the rate is counted. Raises TimeoutError, ConnectionError.
    """
    window = Window()
    latencies, codes, clock = window.latencies, window.codes, time.perf_counter
    by_descriptor = {connection.fileno(): connection for connection in connections}
    with select.epoll() as poller:
        for descriptor in by_descriptor:
            poller.register(descriptor, select.EPOLLIN)
        started, worked = clock(), time.process_time()
        ends = started + seconds
        for connection in connections:
            connection.send_next()
        flying, is_open = len(connections), True
        while flying:
            ready = poller.poll(ANSWER_SECONDS)
            if not ready:
                raise TimeoutError("no answer")
            for descriptor, _ in ready:
                connection = by_descriptor[descriptor]
                code = connection.answer()
                if code is None:
                    continue
                now = clock()
                latencies.append(now - connection.sent_at)
                codes[code] = codes.get(code, 0) + 1
                if is_open and (now >= ends or not connection.unsent):
                    is_open = False
                    window.seconds, window.answered = now - started, len(latencies)
                if is_open:
                    connection.send_next()
                else:
                    flying -= 1
        window.client_seconds = time.process_time() - worked
    return window


def take_lease(address: Address, identity: Identity) -> None:
    """Take a lease over a connection of its own. Raises RuntimeError when it is refused."""
    body = json.dumps({"scopes": ["tools:call"], "dpop_jwk": identity.jwk}).encode()
    head = "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with connected(address) as sock:
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        raw = b""
        while chunk := sock.recv(65536):
            raw += chunk
    answer: dict[str, Any] = json.loads(raw.partition(b"\r\n\r\n")[2])
    if "lease_jwt" not in answer:
        raise RuntimeError(f"no lease: {answer}")
    identity.token = answer["lease_jwt"]
