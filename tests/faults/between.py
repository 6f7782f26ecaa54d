"""A TCP proxy between a gateway and the real server of a dependency, which fails in the ways in which networks do.

One thread a connection, so that what it closes is closed at once. The clients' bytes are kept, to be counted.
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.ports import free_port

REFUSES, HANGS, RESETS, GARBAGE, SLOW = "refuses", "hangs", "resets in the middle", "garbage", "slow"
NOISE = b"\x16\x03\x01\x00\x05hello, who is there?\r\n\r\n"
DELAY_SECONDS = 0.05
"""The delay of each piece of an answer: long for a server on this machine, and well within every deadline."""
Place = tuple[str, int] | str


class Between:
    """Listens on a port of loopback, and passes on to `server` (host and port, or the path of a Unix socket)."""

    def __init__(self, server: Place) -> None:
        self.server = server
        self.port = free_port()
        self.heard: list[bytes] = []
        """The bytes that clients have sent."""
        self._fault: str | None = None
        self._over = threading.Event()
        self._clients: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._listen()

    def passed_on(self, data: bytes) -> bytes:
        """The part of a client's bytes that the server gets: all of it."""
        return data

    def count(self, words: bytes) -> int:
        """How often clients have sent this."""
        return b"".join(self.heard).count(words)

    @contextmanager
    def failing(self, fault: str) -> Iterator[None]:
        """Within the block it does this; connections that are open stay, unless they would be refused."""
        self._over.clear()
        self._fault = fault
        if fault == REFUSES:
            self._leave()
        try:
            yield
        finally:
            self._fault = None
            self._over.set()
            if fault == REFUSES:
                self._listen()

    def lead_to(self, server: Place) -> None:
        """Replace the server by another one and end the connections to it."""
        self.server = server
        self._cut()

    def close(self) -> None:
        """The end."""
        self._leave()
        self._over.set()

    def _listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _leave(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._cut()

    def _cut(self) -> None:
        for client in list(self._clients):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._clients.add(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
                if listener is not self._listener:  # taken just before the end, which may have cut the others already
                    client.shutdown(socket.SHUT_RDWR)

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            server: socket.socket | None = None
            waiting = select.poll()  # not select.select: a run may have more than a thousand files open
            waiting.register(client, select.POLLIN)
            while True:
                ready = {descriptor for descriptor, _ in waiting.poll()}
                source = client if client.fileno() in ready else server
                assert source is not None
                data = source.recv(65536)
                if not data or not self._passes(data, client, is_asked=source is client):
                    break
                if server is None:
                    server = stack.enter_context(_connected(self.server))
                    waiting.register(server, select.POLLIN)
                (server if source is client else client).sendall(self.passed_on(data) if source is client else data)
        self._clients.discard(client)

    def _passes(self, data: bytes, client: socket.socket, *, is_asked: bool) -> bool:
        """False where the fault of this moment has dealt with it, and the connection is over."""
        if is_asked:
            self.heard.append(data)
        if self._fault == HANGS:
            self._over.wait()
            return False
        if self._fault == GARBAGE and is_asked:
            client.sendall(NOISE)
            return False
        if self._fault == RESETS and not is_asked:
            client.sendall(data[: len(data) // 2])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if self._fault == SLOW and not is_asked:
            self._over.wait(DELAY_SECONDS)
        return True


def _connected(place: Place) -> socket.socket:
    if isinstance(place, tuple):
        return socket.create_connection(place)
    one = socket.socket(socket.AF_UNIX)
    one.connect(place)
    return one
