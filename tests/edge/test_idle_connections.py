"""Connections that ask for nothing: each ends at its time, and a stream that is reset ends alone."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h2.connection
import h2.events
import pytest
import trio

from edge import connections, serving
from edge.serving import serve_edge
from edge.tls import EdgeCertificate
from ipc.configuration.edge_settings import EdgeLimitSettings, EdgeSettings, EdgeTlsSettings
from tests.support.certificates import made_certificate
from tests.support.hostile_gateway import hostile_gateway, whole

SECONDS = 60
IDLE_SECONDS = 0.5
ASKED = [(":method", "GET"), (":path", "/healthz"), (":scheme", "http"), (":authority", "gate.example")]
SENT = [(":method", "POST"), (":path", "/v1/leases"), (":scheme", "http"), (":authority", "gate.example")]
TUNNEL = [(":method", "CONNECT"), (":protocol", "other"), (":path", "/"), *ASKED[2:]]
Frames = Callable[[h2.connection.H2Connection], None]


@asynccontextmanager
async def connected(folder: Path, certificate: EdgeCertificate | None = None) -> AsyncIterator[trio.SocketStream]:
    """A connection to an edge on loopback, on which TLS has not been agreed on."""
    listener = socket.create_server(("127.0.0.1", 0))
    settings = EdgeSettings(
        listen="127.0.0.1:0", public_base_url="http://127.0.0.1", client_socket=str(folder / "gate.sock"),
        limits=EdgeLimitSettings(),
    )  # fmt: skip
    with hostile_gateway(whole(b"{}", Connection="close"), settings.client_socket):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_edge, settings, listener, certificate)
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


async def test_pings_keep_no_connection_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", IDLE_SECONDS)
    async with connected(tmp_path) as stream:
        http2 = h2.connection.H2Connection()
        http2.initiate_connection()
        with trio.fail_after(SECONDS), pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
            while True:
                http2.ping(b"12345678")
                await stream.send_all(http2.data_to_send())
                if not await stream.receive_some():
                    raise trio.ClosedResourceError


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"], ids=["nothing", "half a head"])
async def test_a_head_of_http_1_that_does_not_end_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "FIRST_SECONDS", IDLE_SECONDS)
    async with connected(tmp_path) as stream:
        await stream.send_all(sent)
        with trio.fail_after(SECONDS):
            assert not await stream.receive_some()


async def test_a_client_that_shakes_no_hands_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HANDSHAKE_SECONDS", IDLE_SECONDS)
    roots = made_certificate(tmp_path, "127.0.0.1")
    certificate = EdgeCertificate(EdgeTlsSettings(str(roots), str(tmp_path / "key.pem")))
    async with connected(tmp_path, certificate) as stream:
        with trio.fail_after(SECONDS):
            assert not await stream.receive_some()


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
