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
        """Of the next request with these words: the connection is reset once the server has answered (RESET), nothing
        comes for as long as the client waits (SILENT), or the request has not come to the server yet (LATE)."""
        self._words, self._how = words, how

    def open(self) -> None:
        """The way is as before; first of all, an answer that is to be lost is lost."""
        wait_for(lambda: not self._deaf, "the answer")
        self._listen()

    def shut(self) -> None:
        """No answer is lost, and no more are to be had."""
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
