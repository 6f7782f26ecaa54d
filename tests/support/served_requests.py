"""The HTTP of the programs beside a gateway, in this process, with bounds of the test's own."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from serving.limits import ServingLimits
from serving.server import serve_until_signal
from serving.tls import FollowedCertificate
from tests.support.http_socket import Client, Respond, connected

PATIENT = ServingLimits(
    max_connections=64, max_body=1000, send_seconds=600.0, head_seconds=600.0, body_seconds=600.0
)  # fmt: skip
Address = tuple[str, int]


@asynccontextmanager
async def served(
    respond: Respond, limits: ServingLimits = PATIENT, certificate: FollowedCertificate | None = None
) -> AsyncIterator[Address]:
    """Serve until the block ends."""
    sock = socket.create_server(("127.0.0.1", 0))
    address: Address = sock.getsockname()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_until_signal, "test", sock, respond, limits, certificate)
        yield address
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def connected_by_tls(address: Address, context: ssl.SSLContext) -> AsyncIterator[Client]:
    """A client that has shaken hands."""
    async with connected(address) as client:
        stream = trio.SSLStream(client.stream, context, server_hostname="localhost", https_compatible=True)
        await stream.do_handshake()
        yield Client(stream)  # type: ignore[arg-type]
