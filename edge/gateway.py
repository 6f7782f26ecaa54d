"""The way to the gateway's client socket: a bounded pool of connections, and each failure by its name.

Never sends a request twice, as a proof counts once. SECURITY: tokens and proofs are in no log line and in no error.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpcore

from edge.endpoints import EdgeEndpoint
from edge.heads import Headers

PLACES: Final = 128
"""Requests at the gateway at once."""
PLACE_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 30.0
KEEP_SECONDS: Final = 5.0
"""Far below the time after which a gateway closes a connection that is idle."""


class NoAnswer(Exception):
    """The gateway has given none: status and code for the client."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class ClientSocket:
    """The client socket of one gateway."""

    def __init__(self, path: str) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            uds=path, max_connections=PLACES, max_keepalive_connections=PLACES, keepalive_expiry=KEEP_SECONDS
        )

    @asynccontextmanager
    async def asked(
        self, endpoint: EdgeEndpoint, target: bytes, headers: Headers, body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        """The gateway's answer, whose body is still to be read. Raises NoAnswer, also while it is read."""
        url = httpcore.URL(scheme=b"http", host=b"localhost", port=80, target=target)
        seconds = {
            "connect": CONNECT_SECONDS, "pool": PLACE_SECONDS, "write": WRITE_SECONDS, "read": endpoint.seconds
        }  # fmt: skip
        sent = [(b"host", b"localhost"), *headers]
        if endpoint.method == "POST":
            sent.append((b"content-length", b"%d" % len(body)))
        try:
            async with self._pool.stream(
                endpoint.method, url, headers=sent, content=body or None, extensions={"timeout": seconds}
            ) as answer:
                yield answer
        except httpcore.PoolTimeout:
            raise NoAnswer(503, "gateway_busy") from None
        except (httpcore.ConnectError, httpcore.ConnectTimeout):
            raise NoAnswer(503, "gateway_unreachable") from None
        except httpcore.TimeoutException:
            raise NoAnswer(504, "gateway_timeout") from None
        except (httpcore.NetworkError, httpcore.ProtocolError):
            raise NoAnswer(502, "gateway_broke_off") from None
