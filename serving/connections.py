"""The open connections of one process, and the bounds that they share: how many, and how much waits to be sent.

At the bound the connection that has been idle longest makes room; where none is idle, the newcomer is closed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from frontend.telemetry.logs import log

MIN_IDLE_SECONDS: Final = 1.0
"""A connection idle for less is not closed to make room: its request may be on the way."""
MAX_UNSENT: Final = 64 * 1024 * 1024
"""Bytes of answers that clients have not taken yet: beyond it the one that has waited longest is cut."""


class ServedConnection:
    """One client's connection. `run` in `scope`, so that `cut` ends it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.scope = trio.CancelScope()
        self.idle_since: float | None = trio.current_time()
        """Trio clock; None while a request is answered."""

    def cut(self) -> None:
        """End it at once, even in the middle of a send that nothing else can cancel."""
        self._stream.socket.close()
        self.scope.cancel()


class ServedConnections:
    """All of them, `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[ServedConnection] = set()
        self._unsent: dict[ServedConnection, int] = {}
        self._is_full = False

    @contextmanager
    def admitted(self, stream: trio.SocketStream) -> Iterator[ServedConnection | None]:
        """Count this connection as long as the block runs; None where there is no room for it."""
        connection = ServedConnection(stream) if self._has_room() else None
        if connection is not None:
            self._open.add(connection)
        try:
            yield connection
        finally:
            if connection is not None:
                self._open.discard(connection)
            stream.socket.close()

    @contextmanager
    def unsent(self, connection: ServedConnection, size: int) -> Iterator[None]:
        """Count an answer that is being sent."""
        while self._unsent and sum(self._unsent.values()) + size > MAX_UNSENT:
            longest = next(iter(self._unsent))
            del self._unsent[longest]
            longest.cut()
        self._unsent[connection] = size
        try:
            yield
        finally:
            self._unsent.pop(connection, None)

    def cut_all(self) -> None:
        """Cut those that are left."""
        for connection in tuple(self._open):
            connection.cut()

    def _has_room(self) -> bool:
        if len(self._open) < self._most:
            self._is_full = False
            return True
        if not self._is_full:
            self._is_full = True
            log.warning("too many connections: idle ones make room", most=self._most)
        latest = trio.current_time() - MIN_IDLE_SECONDS
        idle = [(one.idle_since, one) for one in self._open if one.idle_since is not None and one.idle_since <= latest]
        if not idle:
            return False
        _, longest = min(idle, key=lambda pair: pair[0])
        self._open.discard(longest)
        longest.cut()
        return True
