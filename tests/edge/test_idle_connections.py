"""Connections of HTTP/2 that ask for nothing: each ends at its time, and a stream that is reset ends alone."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h2.connection
import h2.events
import pytest
import trio

from edge import connections
from edge.serving import serve_edge
from ipc.edge_settings import EdgeLimitSettings, EdgeSettings
from tests.support.hostile_gateway import hostile_gateway, whole

SECONDS = 60
IDLE_SECONDS = 0.5
ASKED = [(":method", "GET"), (":path", "/healthz"), (":scheme", "http"), (":authority", "gate.example")]
SENT = [(":method", "POST"), (":path", "/v1/leases"), (":scheme", "http"), (":authority", "gate.example")]
TUNNEL = [(":method", "CONNECT"), (":protocol", "other"), (":path", "/"), *ASKED[2:]]
Frames = Callable[[h2.connection.H2Connection], None]


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[trio.SocketStream]:
    """A connection to an edge on loopback, without TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    settings = EdgeSettings(
        listen="127.0.0.1:0", public_base_url="http://127.0.0.1", client_socket=str(folder / "gate.sock"),
        limits=EdgeLimitSettings(),
    )  # fmt: skip
    with hostile_gateway(whole(b"{}", Connection="close"), settings.client_socket):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_edge, settings, listener, None)
            async with await trio.open_tcp_stream("127.0.0.1", listener.getsockname()[1]) as stream:
                yield stream
            nursery.cancel_scope.cancel()


def _resets(http2: h2.connection.H2Connection) -> None:
    http2.send_headers(1, ASKED, end_stream=True)
    http2.reset_stream(1)


IDLE: dict[str, Frames] = {
    "says hello": lambda http2: None,
    "resets its request": _resets,
    "asks for a tunnel": lambda http2: http2.send_headers(1, TUNNEL),
}


@pytest.mark.parametrize("frames", IDLE.values(), ids=IDLE)
async def test_a_connection_that_has_no_request_under_way_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frames: Frames
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", IDLE_SECONDS)
    async with connected(tmp_path) as stream:
        http2 = h2.connection.H2Connection()
        http2.initiate_connection()
        frames(http2)
        await stream.send_all(http2.data_to_send())
        with trio.fail_after(SECONDS):
            while await stream.receive_some():
                pass


async def test_a_stream_that_is_reset_within_its_body_ends_alone(tmp_path: Path) -> None:
    async with connected(tmp_path) as stream:
        http2 = h2.connection.H2Connection()
        http2.initiate_connection()
        http2.send_headers(1, SENT)
        http2.send_headers(3, SENT)
        await stream.send_all(http2.data_to_send())
        http2.reset_stream(1)
        await stream.send_all(http2.data_to_send())
        http2.ping(b"12345678")
        await stream.send_all(http2.data_to_send())
        await _told(stream, http2, h2.events.PingAckReceived)
        http2.send_data(3, b"{}", end_stream=True)
        await stream.send_all(http2.data_to_send())
        await _told(stream, http2, h2.events.StreamEnded)


async def _told(stream: trio.SocketStream, http2: h2.connection.H2Connection, kind: type[h2.events.Event]) -> None:
    with trio.fail_after(SECONDS):
        while True:
            data = await stream.receive_some()
            assert data, "the connection ended"
            if any(isinstance(event, kind) for event in http2.receive_data(bytes(data))):
                return
