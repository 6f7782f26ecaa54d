"""A connection to a running gateway that sends any bytes at all, and reads answers with h11 as the judge. Blocking.

Every wait has a deadline; an answer that is not HTTP fails the test that reads it.
"""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import h11

from tests.support.replies import Reply

DEADLINE = 120.0


class RawConnection:
    """One client connection. `closed` and `reply` see what the gateway did with it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._received = b""

    def send(self, data: bytes) -> None:
        """Send all; a gateway that has closed already is not an error here: its answer is what counts."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall(data)

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        self.sock.shutdown(socket.SHUT_WR)

    def reply(self, method: str = "GET") -> Reply | None:
        """The next final answer; None when the connection ended without one."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        if self._received:
            parser.receive_data(self._received)
            self._received = b""
        head: h11.Response | None = None
        body = bytearray()
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                data = self._receive()
                if not data and head is None and not parser.trailing_data[0]:
                    return None
                parser.receive_data(data)
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None
                self._received = bytes(parser.trailing_data[0])
                headers = {name.decode(): value.decode() for name, value in head.headers}
                return Reply(head.status_code, headers, bytes(body))

    def replies(self) -> list[Reply]:
        """Every answer up to the end of the connection."""
        replies = []
        while (reply := self.reply()) is not None:
            replies.append(reply)
        return replies

    def ask(self, data: bytes, method: str = "GET") -> Reply | None:
        """Send, then read one answer."""
        self.send(data)
        return self.reply(method)

    def _receive(self) -> bytes:
        self.sock.settimeout(DEADLINE)
        try:
            return self.sock.recv(65536)
        except ConnectionResetError:
            return b""
        except TimeoutError:
            raise AssertionError(f"no byte from the gateway within {DEADLINE:g} s") from None


@contextmanager
def raw(address: str) -> Iterator[RawConnection]:
    """Connect to `http://HOST:PORT` or to the path of a Unix socket."""
    with socket.socket(socket.AF_UNIX if address.startswith("/") else socket.AF_INET) as sock:
        sock.settimeout(DEADLINE)
        if address.startswith("/"):
            sock.connect(address)
        else:
            host, _, port = address.removeprefix("http://").rpartition(":")
            sock.connect((host, int(port)))
        yield RawConnection(sock)


def request(method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> bytes:
    """The bytes of one ordinary request; with a body, also its length and type."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")
