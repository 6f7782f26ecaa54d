"""Slow and numerous clients: each is cut off at its bound, and others are served meanwhile."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, Frames, answered, connected, statuses
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import HostileGateway, Play, hostile_gateway, whole

TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
LARGE = b"[" + b"1," * 4_000_000 + b"1]"
"""More than the buffers of two sockets."""
ASKED = [(":method", "GET"), (":path", "/v1/actions"), (":scheme", "https"), (":authority", "gate.example")]


@contextmanager
def limited(folder: Path, limits: str = "", play: Play | None = None) -> Iterator[tuple[Edge, HostileGateway]]:
    roots = made_certificate(folder, "127.0.0.1")
    with (
        hostile_gateway(play or whole(b"{}", Connection="close"), str(folder / "gate.sock")) as behind,
        edge(edge_config(folder, "gate.sock", f"{TLS}[limits]\n{limits}"), roots) as running,
    ):
        yield running, behind


def test_a_body_that_comes_slowly_is_refused_in_time(tmp_path: Path) -> None:
    with limited(tmp_path, "body_seconds = 0.5\n") as (before, behind), connected(before) as slow:
        received = answered(slow, b"POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert statuses(received) == [408]
        assert behind.requests == []


def _reads_nothing(before: Edge, sock: socket.socket, *, http2: bool) -> None:
    if http2:
        frames = Frames(sock)
        frames.h2.send_headers(1, ASKED, end_stream=True)
        frames.flush()
    else:
        sock.sendall(b"GET /v1/actions HTTP/1.1\r\nHost: x\r\n\r\n")
    wait_for(lambda: any("reads too slowly" in line["message"] for line in before.lines()), "a line about it")
    with contextlib.suppress(OSError):
        while sock.recv(65536):
            pass


def test_a_client_that_reads_nothing_is_cut_off(tmp_path: Path) -> None:
    for http2 in (False, True):
        folder = tmp_path / str(http2)
        folder.mkdir()
        limits = "send_seconds = 0.5\nmax_connections_per_address = 1\n"
        with limited(folder, limits, whole(LARGE, Connection="close")) as (before, _):
            with connected(before, "h2" if http2 else "http/1.1") as sock:
                _reads_nothing(before, sock, http2=http2)
            wait_for(lambda: _is_served(before), "the place of the client that was cut off")


def _is_served(before: Edge) -> bool:
    try:
        with before.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_client_that_has_gone_leaves_its_place_at_once(tmp_path: Path) -> None:
    with limited(tmp_path, "max_connections_per_address = 2\n") as (before, _):
        for _ in range(12):
            wait_for(lambda: _is_served(before), "a place")
        with connected(before, "h2") as sock:
            frames = Frames(sock)
            frames.h2.update_settings({4: 0})  # no byte of a body may come
            frames.h2.send_headers(1, ASKED, end_stream=True)
            frames.flush()
            assert frames.outcome() == 200
        with connected(before):
            wait_for(lambda: _is_served(before), "the place of the client that waited for nothing")


def test_an_address_has_so_many_connections_and_others_are_served(tmp_path: Path) -> None:
    with limited(tmp_path, "max_connections_per_address = 8\n") as (before, _), contextlib.ExitStack() as flood:
        for _ in range(2000):
            flood.enter_context(socket.create_connection(("127.0.0.1", before.port), SECONDS))
        wait_for(lambda: _has_told(before, "connections_of_address"), "a line about it")
        with socket.create_connection(("127.0.0.1", before.port), SECONDS, ("127.0.0.2", 0)) as other:
            context = before.trusting()
            with context.wrap_socket(other, server_hostname="127.0.0.1") as sock:
                assert statuses(answered(sock, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) == [200]


def _has_told(before: Edge, reason: str) -> bool:
    return any(reason in line.get("refused", {}) for line in before.lines())


def test_addresses_that_fill_all_connections_keep_no_other_out(tmp_path: Path) -> None:
    limits = "max_connections = 32\nmax_connections_per_address = 8\n"
    with limited(tmp_path, limits) as (before, _), contextlib.ExitStack() as flood:
        for number in range(64):
            address = f"127.0.0.{2 + number % 4}"
            flood.enter_context(socket.create_connection(("127.0.0.1", before.port), SECONDS, (address, 0)))
        wait_for(lambda: _has_told(before, "connections"), "a line about it")
        for _ in range(8):
            with connected(before) as sock:
                assert statuses(answered(sock, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) == [200]


def test_streams_that_are_reset_at_once_take_no_place_from_others(tmp_path: Path) -> None:
    with limited(tmp_path, "max_connections_per_address = 4\n") as (before, _):
        with connected(before, "h2") as sock, contextlib.suppress(OSError):
            frames = Frames(sock)
            for at in range(2000):
                frames.h2.send_headers(2 * at + 1, ASKED, end_stream=True)
                frames.h2.reset_stream(2 * at + 1)
                frames.flush()
        wait_for(lambda: _is_served(before), "an answer for another client")


def test_an_http2_connection_serves_more_than_a_thousand_requests(tmp_path: Path) -> None:
    with limited(tmp_path) as (before, _):
        client = before.client(http2=True)
        answers = [client.get("/healthz") for _ in range(1100)]
        assert {one.status_code for one in answers} == {200}
