"""Accepts connections, shakes hands where there is a certificate, and gives each connection to hypercorn.

Ends with SIGTERM or SIGINT once the answers under way are out. Input that breaks hypercorn ends its connection alone.
"""

import contextlib
import signal
import socket
from functools import partial
from typing import Final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, RawData
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from frontend.telemetry.logs import log
from serving.application import CONNECTION, HandledRequests, Respond
from serving.connections import ServedConnections
from serving.limits import ServingLimits
from serving.tls import FollowedCertificate

DRAIN_SECONDS: Final = 5.0
"""For answers under way once the signal has come; the rest is cut."""
HANDSHAKE_SECONDS: Final = 10.0
MAX_HEAD: Final = 32 * 1024


class _ConnectionServer(TCPServer):
    """One connection of HTTP/1.1. Hypercorn alone would keep it for the time to be idle once its client has gone, and
    for ever once it speaks HTTP/2."""

    async def _read_data(self) -> None:
        with contextlib.suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            is_open = True
            while is_open and isinstance(self.protocol.protocol, H11Protocol):
                data = bytes(await self.stream.receive_some(MAX_RECV))
                await self.protocol.handle(RawData(data))
                is_open = bool(data)
        await self.protocol.handle(Closed())
        await self.idle_task.stop()


async def serve_until_signal(
    kind: str, sock: socket.socket, respond: Respond, limits: ServingLimits,
    certificate: FollowedCertificate | None = None,
) -> None:  # fmt: skip
    """Serve until SIGTERM or SIGINT. `kind` is what requests say of the socket."""
    connections = ServedConnections(limits.max_connections)
    application = ASGIWrapper(HandledRequests(kind, respond, limits, connections))  # type: ignore[arg-type]
    context = WorkerContext(None)
    serve_one = partial(_serve_one, connections, application, _hypercorn(limits), context, certificate)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async with trio.open_nursery() as beside:
            if certificate is not None:
                beside.start_soon(certificate.follow)
            async with trio.open_nursery() as handlers:
                async with trio.open_nursery() as accepting:
                    accepting.start_soon(partial(trio.serve_listeners, serve_one, [listener], handler_nursery=handlers))
                    async for _ in received:
                        break
                    accepting.cancel_scope.cancel()
                await context.terminated.set()
                beside.start_soon(_cut_late, connections)
            beside.cancel_scope.cancel()
    log.info("stopped")


async def _cut_late(connections: ServedConnections) -> None:
    await trio.sleep(DRAIN_SECONDS)
    connections.cut_all()


async def _serve_one(
    connections: ServedConnections, application: ASGIWrapper, config: Config, context: WorkerContext,
    certificate: FollowedCertificate | None, stream: trio.SocketStream,
) -> None:  # fmt: skip
    with connections.admitted(stream) as connection:
        if connection is None:
            return
        served: trio.SocketStream | trio.SSLStream[trio.SocketStream] = stream
        if certificate is not None:
            served = trio.SSLStream(stream, certificate.context, server_side=True, https_compatible=True)
        state = ConnectionState({CONNECTION: connection})
        try:
            with connection.scope:
                await _ConnectionServer(application, config, context, state, served).run()  # type: ignore[arg-type]
        except Exception as error:
            log.warning("connection ended by an error", error=type(error).__name__)


def _hypercorn(limits: ServingLimits) -> Config:
    config = Config()
    config.errorlog = config.accesslog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = MAX_HEAD
    config.ssl_handshake_timeout = HANDSHAKE_SECONDS
    config.keep_alive_timeout = limits.head_seconds
    return config
