"""Runs a Server on one socket until a signal ends it, for programs without a supervisor."""

import signal
import socket

import trio

from frontend.http.connection import Respond
from frontend.http.server import ListeningSocket, Server
from frontend.telemetry.logs import log
from ipc.settings import LimitSettings

DRAIN_SECONDS = 5.0
"""For answers under way once the signal has come; the rest is cut."""


async def serve_until_signal(kind: str, sock: socket.socket, respond: Respond, limits: LimitSettings) -> None:
    """Serve until SIGTERM or SIGINT. `kind` is what requests say of the socket."""
    server = Server([ListeningSocket(kind, sock)], respond, limits)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async for _ in received:
                break
            await server.drain(DRAIN_SECONDS)
    log.info("stopped")
