"""A way to a Redis that loses one answer: the server has run the command, and its answer never arrives.

From then on the way is shut, as in a network that fails, until the test opens it again.
"""

import contextlib
import socket
import struct

from tests.faults.between import Between
from tests.support.gateway import wait_for

RESET, SILENT, LATE = "reset", "silent", "late"


class Losing(Between):
    """See Between. `lost` are requests whose answers were lost: once one is there, the way is shut."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port))
        self.lost: list[bytes] = []
        self._words, self._how = b"", RESET
        self._deaf: dict[socket.socket, bytes] = {}

    def lose(self, words: bytes, how: str = RESET) -> None:
        """Lose the answer to the next request that contains `words`. RESET resets the connection after the server has
        answered; SILENT sends the client nothing for as long as it waits; LATE holds the request back from the
        server."""
        self._words, self._how = words, how

    def open(self) -> None:
        """Open the connection to the server again, after any pending loss has happened."""
        wait_for(lambda: not self._deaf, "the answer")
        self._listen()

    def shut(self) -> None:
        """Close the connection to the server without losing an answer."""
        self._leave()

    def deliver(self) -> bytes:
        """The request that was late comes to the server now; its answer."""
        with socket.create_connection(self.server if isinstance(self.server, tuple) else ("", 0)) as late:
            late.sendall(self.lost[-1])
            return late.recv(65536)

    def _passes(self, data: bytes, client: socket.socket, *, is_asked: bool) -> bool:
        if is_asked and self._words and self._words in data:
            self._words = b""
            if self._how == LATE:
                return self._ended(client, data)
            self._deaf[client] = data
        elif not is_asked and client in self._deaf:
            return self._ended(client, self._deaf[client])
        return super()._passes(data, client, is_asked=is_asked)

    def _ended(self, client: socket.socket, asked: bytes) -> bool:
        assert self._listener is not None
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.lost.append(asked)
        self._deaf.pop(client, None)
        if self._how == SILENT:
            client.recv(1)  # until it gives up
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
