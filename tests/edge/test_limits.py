"""Slow and numerous clients: each is cut off at its bound, and others are served meanwhile."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h2.events
import httpx
import pytest

from tests.support.certificates import made_certificate
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, Frames, Headers, answered, connected, statuses
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import Connection, HostileGateway, hostile_gateway, whole

TLS = '[tls]\ncertificate_file = "certificate.pem"\nkey_file = "key.pem"\n'
FEW = "max_connections = 32\nmax_connections_per_address = 8\n"
LARGE = b"[" + b"1," * 4_000_000 + b"1]"
"""More than the buffers of two sockets."""
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def asking(path: str) -> Headers:
    return [(":method", "GET"), (":path", path), (":scheme", "https"), (":authority", "gate.example")]


def large_actions(connection: Connection) -> None:
    is_large = connection.request.startswith(b"GET /v1/actions")
    whole(LARGE if is_large else b"{}", Connection="close")(connection)


@contextmanager
def limited(folder: Path, limits: str) -> Iterator[tuple[Edge, HostileGateway]]:
    roots = made_certificate(folder, "127.0.0.1")
    with (
        hostile_gateway(large_actions, str(folder / "gate.sock")) as behind,
        edge(edge_config(folder, "gate.sock", f"{TLS}[limits]\n{limits}"), roots) as running,
    ):
        yield running, behind


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """An edge with room for 32 connections, and for 8 of an address."""
    with limited(tmp_path_factory.mktemp("few"), FEW) as (before, _):
        yield before


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Edge, HostileGateway]]:
    """An edge that waits for no client, with room for one connection of an address, and the gateway behind it."""
    limits = "body_seconds = 0.5\nsend_seconds = 0.5\nmax_connections_per_address = 1\n"
    with limited(tmp_path_factory.mktemp("impatient"), limits) as (before, behind):
        yield before, behind


@contextmanager
def placed(before: Edge, *protocols: str) -> Iterator[ssl.SSLSocket]:
    """A connection, once clients from before have left a place for it."""
    with contextlib.ExitStack() as stack:

        def admitted() -> ssl.SSLSocket | None:
            try:
                return stack.enter_context(connected(before, *protocols))
            except OSError:
                return None

        yield wait_for(admitted, "a place")


def is_served(before: Edge) -> bool:
    try:
        with before.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_body_that_comes_slowly_is_refused_in_time(impatient: tuple[Edge, HostileGateway]) -> None:
    before, behind = impatient
    with placed(before) as slow:
        received = answered(slow, b"POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    assert statuses(received) == [408]
    assert not [one for one in behind.requests if one.startswith(b"POST")]


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_a_client_that_reads_nothing_is_cut_off(impatient: tuple[Edge, HostileGateway], protocol: str) -> None:
    before, _ = impatient

    def cut() -> int:
        return sum("reads too slowly" in line["message"] for line in before.lines())

    earlier = cut()
    with placed(before, protocol) as sock:
        if protocol == "h2":
            frames = Frames(sock)
            frames.h2.send_headers(1, asking("/v1/actions"), end_stream=True)
            frames.flush()
        else:
            sock.sendall(b"GET /v1/actions HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: cut() > earlier, "a line about it")
        with contextlib.suppress(OSError):
            while sock.recv(65536):
                pass
        wait_for(lambda: is_served(before), "the place of the client that was cut off")


def test_streams_that_are_reset_at_once_take_no_place_from_others(impatient: tuple[Edge, HostileGateway]) -> None:
    before, _ = impatient
    with placed(before, "h2") as sock, contextlib.suppress(OSError):
        frames = Frames(sock)
        for at in range(300):
            frames.h2.send_headers(2 * at + 1, asking("/healthz"), end_stream=True)
            frames.h2.reset_stream(2 * at + 1)
            frames.flush()
    wait_for(lambda: is_served(before), "an answer for another client")


def test_a_client_that_has_gone_leaves_its_place_at_once(few: Edge) -> None:
    for _ in range(12):
        wait_for(lambda: is_served(few), "a place")
    with placed(few, "h2") as sock:
        frames = Frames(sock)
        frames.h2.update_settings({4: 0})  # no byte of a body may come
        frames.h2.send_headers(1, asking("/v1/actions"), end_stream=True)
        frames.flush()
        assert frames.outcome() == 200
    with contextlib.ExitStack() as others:
        silent = [others.enter_context(placed(few)) for _ in range(7)]
        wait_for(lambda: is_served(few), "the place of the client that waited for nothing")
        assert statuses(answered(silent[0], HEALTH)) == [200], "none was cut for its place"


def test_an_address_has_so_many_connections_and_others_are_served(few: Edge) -> None:
    with contextlib.ExitStack() as flood:
        for _ in range(64):
            flood.enter_context(socket.create_connection(("127.0.0.1", few.port), SECONDS))
        wait_for(lambda: has_told(few, "connections_of_address"), "a line about it")
        with (
            socket.create_connection(("127.0.0.1", few.port), SECONDS, ("127.0.0.2", 0)) as other,
            few.trusting().wrap_socket(other, server_hostname="127.0.0.1") as sock,
        ):
            assert statuses(answered(sock, HEALTH)) == [200]


def has_told(before: Edge, reason: str) -> bool:
    return any(reason in line.get("refused", {}) for line in before.lines())


def test_addresses_that_fill_all_connections_keep_no_other_out(tmp_path: Path) -> None:
    with limited(tmp_path, FEW) as (before, _), contextlib.ExitStack() as flood:
        for number in range(64):
            address = f"127.0.0.{2 + number % 4}"
            flood.enter_context(socket.create_connection(("127.0.0.1", before.port), SECONDS, (address, 0)))
        wait_for(lambda: has_told(before, "connections"), "a line about it")
        for _ in range(8):
            with connected(before) as sock:
                assert statuses(answered(sock, HEALTH)) == [200]


def test_an_http2_connection_serves_more_than_a_thousand_requests(few: Edge) -> None:
    at_once, told = 8, []
    with placed(few, "h2") as sock:
        frames = Frames(sock)
        for first in range(0, 1104, at_once):
            for number in range(first, first + at_once):
                frames.h2.send_headers(2 * number + 1, asking("/nowhere"), end_stream=True)
            left = at_once
            while left:
                frames.flush()
                received = sock.recv(65536)
                assert received
                for event in frames.h2.receive_data(received):
                    if isinstance(event, h2.events.ResponseReceived):
                        told += [int(value) for name, value in event.headers if name in (b":status", ":status")]
                    elif isinstance(event, h2.events.DataReceived):
                        frames.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        left -= 1
                    else:
                        assert not isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated)
    assert told == [404] * 1104
