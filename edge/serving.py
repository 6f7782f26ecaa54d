"""Accepts connections, shakes hands, and gives each to hypercorn; ends with SIGTERM or SIGINT once answers are out.

Input that breaks a connection, or the library that reads it, ends that connection alone.
"""

import contextlib
import signal
import socket
import ssl
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from edge.application import EdgeApplication
from edge.connection import CONNECTION, EdgeConnection
from edge.connections import IDLE_SECONDS, EdgeConnections
from edge.frames import FrameBudget
from edge.gateway import ClientSocket
from edge.heads import MAX_HEAD
from edge.places import GatewayPlaces, place_share
from edge.refusals import EdgeRefusals
from edge.tls import EdgeCertificate, why_refused
from frontend.telemetry.logs import log
from ipc.configuration.edge_settings import EdgeSettings

if TYPE_CHECKING:
    from edge.mcp.endpoint import McpEndpoint

DRAIN_SECONDS: Final = 35.0
"""For answers under way once the signal has come; the rest is cut. Longer than a gateway takes that ends with it."""
HANDSHAKE_SECONDS: Final = 10.0
STREAMS: Final = 32


class _EdgeServer(TCPServer):
    """One connection, all of which ends once its client has gone. Hypercorn alone would let it wait for the time of an
    idle connection, and for answers without a reader."""

    connection: EdgeConnection
    frames: FrameBudget

    async def protocol_send(self, event: Event) -> None:
        """Send what was held back together with what comes next. No task waits for the end of each idle time: the
        watch of all connections does."""
        held = self.connection.held_back
        if isinstance(event, Updated):
            await self.idle_task.stop()
        elif not isinstance(event, RawData):
            await super().protocol_send(event)
        elif self.connection.holds_back:
            self.connection.held_back = held + event.data
        else:
            self.connection.held_back = b""
            self.frames.earn(event.data)
            await super().protocol_send(RawData(held + event.data) if held else event)

    async def _read_data(self) -> None:
        with contextlib.suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            while data := bytes(await self.stream.receive_some(MAX_RECV)):
                self.frames.count(data)
                if self.frames.is_spent:
                    log.warning("connection cut: frames without requests", address=self.connection.address)
                    break
                await self.protocol.handle(RawData(data))
                if isinstance(self.protocol.protocol, H2Protocol) and not self.frames.is_http2:
                    break
        self.connection.abort()


async def serve_edge(settings: EdgeSettings, sock: socket.socket, certificate: EdgeCertificate | None) -> None:
    """Serve until a signal comes."""
    connections = EdgeConnections(settings.limits)
    gateway = ClientSocket(settings.client_socket, GatewayPlaces(place_share(settings.limits)))
    mcp = _mcp_endpoint(settings, gateway, connections.refusals)
    application = EdgeApplication(gateway, connections, settings.limits, mcp)
    context = WorkerContext(None)  # never terminated: hypercorn would then lose the end of answers of HTTP/2
    handle = partial(_handle, connections, certificate, ASGIWrapper(application), _hypercorn(), context)  # type: ignore[arg-type]
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async with trio.open_nursery() as watching:
            watching.start_soon(connections.watch)
            watching.start_soon(connections.refusals.watch)
            watching.start_soon(connections.refused_certificates.watch)
            if certificate is not None:
                certificate.roots_gone = connections.distrust_certificates
                watching.start_soon(certificate.follow)
            if mcp is not None:
                watching.start_soon(mcp.run)
            async with trio.open_nursery() as handlers:
                accepting = trio.CancelScope()
                handlers.start_soon(_accept, accepting, handle, listener, handlers)
                async for _ in received:
                    break
                accepting.cancel()
                await listener.aclose()
                connections.drain()
                watching.start_soon(_cut, connections, handlers.cancel_scope)
            watching.cancel_scope.cancel()
    log.info("stopped")


def _mcp_endpoint(settings: EdgeSettings, gateway: ClientSocket, refusals: EdgeRefusals) -> "McpEndpoint | None":
    if settings.mcp is None:
        return None
    from edge.mcp.endpoint import McpEndpoint

    return McpEndpoint(settings, settings.mcp, gateway, refusals)


async def _accept(scope: trio.CancelScope, handle: Any, listener: trio.SocketListener, handlers: trio.Nursery) -> None:
    with scope:
        await trio.serve_listeners(handle, [listener], handler_nursery=handlers)


async def _cut(connections: EdgeConnections, scope: trio.CancelScope) -> None:
    await trio.sleep(DRAIN_SECONDS)
    connections.abort_all()
    scope.cancel()


async def _handle(
    connections: EdgeConnections, certificate: EdgeCertificate | None, application: ASGIWrapper, config: Config,
    context: WorkerContext, stream: trio.SocketStream,
) -> None:  # fmt: skip
    connection = connections.admit(stream)
    if connection is None:
        stream.socket.close()
        return
    try:
        served = await _shaken(certificate, stream, connection, connections.refused_certificates)
        if served is not None:
            state = ConnectionState({CONNECTION: connection})
            server = _EdgeServer(application, config, context, state, served)  # type: ignore[arg-type]
            server.connection, server.frames = connection, FrameBudget()
            with connection.scope:
                await server.run()
    except Exception as error:
        log.warning("connection ended by an error", address=connection.address, error=type(error).__name__)
    finally:
        connections.release(connection)
        connection.abort()


async def _shaken(
    certificate: EdgeCertificate | None, stream: trio.SocketStream, connection: EdgeConnection, refused: EdgeRefusals
) -> trio.SSLStream[trio.SocketStream] | trio.SocketStream | None:  # fmt: skip
    """The stream to serve; None where TLS was not agreed on."""
    if certificate is None:
        return stream
    context = certificate.context
    served = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
    with trio.move_on_after(HANDSHAKE_SECONDS):
        try:
            await served.do_handshake()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            if (why := why_refused(error.__cause__)) is not None:
                refused.count(why, connection.address)
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                # The alert that tells the client: trio leaves it unsent.
                await stream.send_all(served._outgoing.read())
            return None
        shown = served.getpeercert()
        if shown:
            ends = ssl.cert_time_to_seconds(shown["notAfter"])
            connection.show(served.getpeercert(binary_form=True), ends if certificate.context is context else 0.0)
        return served
    return None


def _hypercorn() -> Config:
    config = Config()
    config.errorlog = config.accesslog = None
    config.h11_max_incomplete_size = config.h2_max_header_list_size = MAX_HEAD
    config.h2_max_concurrent_streams = STREAMS
    config.keep_alive_timeout = IDLE_SECONDS
    config.keep_alive_max_requests = sys.maxsize  # at that number HTTP/2 would lose answers that are under way
    config.include_server_header = False
    return config
