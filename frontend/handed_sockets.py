"""Sockets of the processes beside a front, as the supervisor hands them over: one is served after the other."""

import socket
from collections.abc import Awaitable, Callable

import trio


class HandedSockets:
    """The sockets of one kind of process. The newest one counts: one that was not served yet is closed for it."""

    def __init__(self) -> None:
        self._next: tuple[socket.socket, int] | None = None
        self._arrived = trio.Event()

    def put(self, sock: socket.socket, pid: int) -> None:
        """A fresh process is at the other end."""
        self._close()
        self._next = (sock, pid)
        self._arrived.set()

    async def serve(self, serve_one: Callable[[socket.socket, int], Awaitable[None]]) -> None:
        """Serve each of them until it ends, until cancelled."""
        try:
            while True:
                await self._arrived.wait()
                assert self._next is not None
                (sock, pid), self._next, self._arrived = self._next, None, trio.Event()
                await serve_one(sock, pid)
        finally:
            self._close()

    def _close(self) -> None:
        if self._next is not None:
            self._next[0].close()
            self._next = None
