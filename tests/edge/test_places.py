"""Places at the gateway: none for clients that do not take their answers, and for each address its share."""

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge.places import PLACES, place_share
from ipc.configuration.edge_settings import EdgeLimitSettings
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS, Frames
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import Connection, hostile_gateway, whole

ASKED = [(":method", "GET"), (":path", "/v1/actions"), (":scheme", "http"), (":authority", "gate.example")]
STREAMS = 32
ADDRESSES = 3
GREEDY = 2
"""Addresses that want all places."""
SHARE = 32
LARGE = b"1" * 6_000_000
"""More than a socket takes from its sender, and together more than memory holds."""


@contextmanager
def asking(before: Edge, addresses: int, window: int = 65_535) -> Iterator[list[Frames]]:
    """Two connections of each address, with as many requests as they may have."""
    with contextlib.ExitStack() as clients:
        made = []
        for number in range(2 * addresses):
            address = f"127.0.0.{2 + number // 2}"
            sock = clients.enter_context(socket.create_connection(("127.0.0.1", before.port), SECONDS, (address, 0)))
            frames = Frames(sock)
            frames.h2.update_settings({4: window})
            for at in range(STREAMS):
                frames.h2.send_headers(2 * at + 1, ASKED, end_stream=True)
            frames.flush()
            made.append(frames)
        yield made


def test_clients_that_do_not_take_their_answers_keep_no_place(tmp_path: Path) -> None:
    with (
        hostile_gateway(whole(b"{}", Connection="close"), str(tmp_path / "gate.sock")),
        edge(edge_config(tmp_path, "gate.sock", "[limits]\nsend_seconds = 3000\n")) as before,
        asking(before, ADDRESSES, window=0) as clients,  # no byte of a body may come
    ):
        assert {frames.outcome() for frames in clients} == {200}
        assert 2 * ADDRESSES * STREAMS > PLACES
        assert before.client().get("/healthz").status_code == 200


def test_large_answers_that_are_not_taken_keep_no_place(tmp_path: Path) -> None:
    def plays(connection: Connection) -> None:
        is_probe = connection.request.startswith(b"GET /healthz ")
        whole(b"{}" if is_probe else LARGE, Connection="close")(connection)

    with (
        hostile_gateway(plays, str(tmp_path / "gate.sock")) as behind,
        edge(edge_config(tmp_path, "gate.sock", "[limits]\nsend_seconds = 3000\n")) as before,
        contextlib.ExitStack() as clients,
    ):
        for _ in range(SHARE):
            sock = clients.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", before.port))
            sock.sendall(b"GET /v1/actions HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: len(behind.requests) == SHARE, "requests in all places that an address may have")
        wait_for(lambda: before.client().get("/healthz").status_code == 200, "a place")


def test_an_address_takes_its_share_of_the_places_and_others_are_answered(tmp_path: Path) -> None:
    def answers_the_probe(connection: Connection) -> None:
        if not connection.request.startswith(b"GET /healthz "):
            connection.over.wait()
        whole(b"{}", Connection="close")(connection)

    with (
        hostile_gateway(answers_the_probe, str(tmp_path / "gate.sock")) as behind,
        edge(edge_config(tmp_path, "gate.sock")) as before,
        asking(before, GREEDY),
    ):
        wait_for(lambda: len(behind.requests) >= GREEDY * SHARE, "all places that two addresses may have")
        assert 2 * GREEDY * STREAMS >= PLACES
        assert before.client().get("/healthz").status_code == 200
        assert len(behind.requests) == GREEDY * SHARE + 1


@pytest.mark.parametrize(("connections", "of_an_address", "share"), [(1024, 64, 32), (1024, 512, 64), (64, 64, 128)])
def test_an_address_that_may_have_more_of_the_connections_has_more_of_the_places(
    connections: int, of_an_address: int, share: int
) -> None:
    limits = EdgeLimitSettings(max_connections=connections, max_connections_per_address=of_an_address)
    assert place_share(limits) == share
