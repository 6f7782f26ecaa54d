"""The way to the gateway's client socket: a bounded number of connections, and each failure by its name.

Never sends a request twice, as a proof counts once. SECURITY: tokens and proofs are in no log line and in no error.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from edge.endpoints import EdgeEndpoint
from edge.exchange import BrokenExchange, GatewayConnection
from edge.heads import Headers
from edge.places import GatewayPlaces

CONNECT_SECONDS: Final = 5.0
KEEP_SECONDS: Final = 5.0
"""Far below the time after which a gateway closes a connection that is idle."""


class NoAnswer(Exception):
    """The gateway has given none: status and code for the client."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class ClientSocket:
    """The client socket of one gateway. A request takes the kept connection that was used last."""

    def __init__(self, path: str, places: GatewayPlaces) -> None:
        self._path = path
        self._places = places
        self._kept: list[GatewayConnection] = []

    @asynccontextmanager
    async def asked(
        self, address: str, endpoint: EdgeEndpoint, target: bytes, headers: Headers, body: bytes
    ) -> AsyncIterator[GatewayConnection]:
        """The gateway's answer to a client's request, whose body is still to be read. Raises NoAnswer, also while it
        is read."""
        sent = [(b"host", b"localhost"), *headers]
        if endpoint.method == "POST":
            sent.append((b"content-length", b"%d" % len(body)))
        try:
            place = await self._places.take(address)
        except trio.TooSlowError:
            raise NoAnswer(503, "gateway_busy") from None
        try:
            connection = await self._connection()
            is_kept = False
            try:
                await connection.ask(endpoint.method.encode(), target, sent, body, endpoint.seconds)
                yield connection
                is_kept = connection.keep()
            except trio.TooSlowError:
                raise NoAnswer(504, "gateway_timeout") from None
            except BrokenExchange:
                raise NoAnswer(502, "gateway_broke_off") from None
            finally:
                if is_kept:
                    self._kept.append(connection)
                else:
                    connection.close()
        finally:
            self._places.release(address, place)

    async def _connection(self) -> GatewayConnection:
        """A kept connection, or a new one. Raises NoAnswer."""
        while self._kept:
            connection = self._kept.pop()
            if connection.is_usable(KEEP_SECONDS):
                return connection
            connection.close()
        try:
            with trio.fail_after(CONNECT_SECONDS):
                return GatewayConnection(await trio.open_unix_socket(self._path))
        except (OSError, trio.TooSlowError):
            raise NoAnswer(503, "gateway_unreachable") from None
