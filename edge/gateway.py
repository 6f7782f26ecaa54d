"""The way to the gateway's client socket: a bounded number of connections, and each failure by its name.

Never sends a request twice, as a proof counts once. SECURITY: tokens and proofs are in no log line and in no error.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpcore
import trio

from edge.endpoints import EdgeEndpoint
from edge.heads import Headers

PLACES: Final = 128
"""Requests at the gateway at once."""
PLACE_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 30.0
KEEP_SECONDS: Final = 5.0
"""Far below the time after which a gateway closes a connection that is idle."""


_ORIGIN: Final = httpcore.Origin(b"http", b"localhost", 80)


class NoAnswer(Exception):
    """The gateway has given none: status and code for the client."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class ClientSocket:
    """The client socket of one gateway. Of the connections that are kept the one used last is used next."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._places = trio.CapacityLimiter(PLACES)
        self._kept: list[httpcore.AsyncHTTPConnection] = []

    @asynccontextmanager
    async def asked(
        self, endpoint: EdgeEndpoint, target: bytes, headers: Headers, body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        """The gateway's answer, whose body is still to be read. Raises NoAnswer, also while it is read."""
        url = httpcore.URL(scheme=b"http", host=b"localhost", port=80, target=target)
        seconds = {"connect": CONNECT_SECONDS, "write": WRITE_SECONDS, "read": endpoint.seconds}
        sent = [(b"host", b"localhost"), *headers]
        if endpoint.method == "POST":
            sent.append((b"content-length", b"%d" % len(body)))
        async with self._connection() as connection:
            try:
                async with connection.stream(
                    endpoint.method, url, headers=sent, content=body or None, extensions={"timeout": seconds}
                ) as answer:
                    yield answer
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                raise NoAnswer(503, "gateway_unreachable") from None
            except httpcore.TimeoutException:
                raise NoAnswer(504, "gateway_timeout") from None
            except (httpcore.NetworkError, httpcore.ProtocolError):
                raise NoAnswer(502, "gateway_broke_off") from None

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[httpcore.AsyncHTTPConnection]:
        """One that is idle, or a new one; kept afterwards if it can be used again. Raises NoAnswer."""
        with trio.move_on_after(PLACE_SECONDS) as waiting:
            await self._places.acquire_on_behalf_of(place := object())
        if waiting.cancelled_caught:
            raise NoAnswer(503, "gateway_busy")
        connection = self._usable()
        try:
            yield connection
        finally:
            self._places.release_on_behalf_of(place)
            if connection.is_idle():
                self._kept.append(connection)
            else:
                with trio.CancelScope(shield=True):
                    await connection.aclose()

    def _usable(self) -> httpcore.AsyncHTTPConnection:
        while self._kept:
            connection = self._kept.pop()
            if not connection.has_expired():
                return connection
        return httpcore.AsyncHTTPConnection(_ORIGIN, uds=self._path, keepalive_expiry=KEEP_SECONDS)
