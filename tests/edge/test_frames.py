"""Floods of HTTP/2 frames that ask for nothing: the connection is cut, and others are served."""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import h2.connection
import pytest

from edge.frames import MAX_UNEARNED, PREFACE, FrameBudget
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.edge_wire import SECONDS
from tests.support.gateway import wait_for
from tests.support.hostile_gateway import hostile_gateway, whole

SETTINGS, PING, PRIORITY, WINDOW_UPDATE, RST_STREAM, HEADERS, CONTINUATION, DATA = 4, 6, 2, 8, 3, 1, 9, 0
HEAD = bytes([0x82, 0x86, 0x84, 0x41, 1]) + b"x"
"""GET https / of the host x."""
POST = bytes([0x83, 0x86, 0x44, 10]) + b"/v1/leases" + bytes([0x41, 1]) + b"x"
ROUNDS = 3 * MAX_UNEARNED


def frame(kind: int, stream: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


FLOODS: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "settings": (b"", lambda at: frame(SETTINGS)),
    "pings": (b"", lambda at: frame(PING, payload=b"12345678")),
    "priorities": (b"", lambda at: frame(PRIORITY, 1, struct.pack("!IB", 3, 1))),
    "updates of the window": (b"", lambda at: frame(WINDOW_UPDATE, payload=struct.pack("!I", 1))),
    "streams that are reset": (
        b"",
        lambda at: frame(HEADERS, 2 * at + 1, HEAD, 5) + frame(RST_STREAM, 2 * at + 1, b"\0\0\0\x08"),
    ),
    "empty pieces of a body": (frame(HEADERS, 1, POST, 4), lambda at: frame(DATA, 1)),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("edge")
    limits = "[limits]\nbody_seconds = 600\n"
    with (
        hostile_gateway(whole(b"{}", Connection="close"), str(folder / "gate.sock")),
        edge(edge_config(folder, "gate.sock", limits)) as running,
    ):
        yield running


def _told(before: Edge) -> int:
    return sum("frames without requests" in line["message"] for line in before.lines())


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_frames_ends_its_connection(before: Edge, name: str) -> None:
    first, frames = FLOODS[name]
    known = _told(before)
    with socket.create_connection(("127.0.0.1", before.port), SECONDS) as sock:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(PREFACE + frame(SETTINGS) + first)
            for at in range(ROUNDS):
                sock.sendall(frames(at))
        wait_for(lambda: _told(before) > known, "a line about it")
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(65536):
                pass
    assert before.client().get("/healthz").status_code == 200


@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_frames_are_counted_however_their_bytes_come(size: int) -> None:
    client = h2.connection.H2Connection()
    client.initiate_connection()
    client.ping(b"12345678")
    sent = client.data_to_send() + frame(PING, payload=b"12345678") * (MAX_UNEARNED - 2)
    budget = FrameBudget()
    for at in range(0, len(sent), size):
        budget.count(sent[at : at + size])
    assert not budget.is_spent
    budget.count(frame(SETTINGS))
    assert budget.is_spent


def test_answers_earn_frames() -> None:
    budget = FrameBudget()
    budget.count(PREFACE)
    for _ in range(3):
        budget.count(frame(SETTINGS) * (MAX_UNEARNED - 2))
        for _ in range(MAX_UNEARNED):
            budget.earn(frame(DATA, 1, b"{}"))
        assert not budget.is_spent
    budget.earn(frame(PING, payload=b"12345678"))
    budget.count(frame(SETTINGS) * (MAX_UNEARNED + 1))
    assert budget.is_spent


def test_bytes_of_http_1_are_no_frames() -> None:
    budget = FrameBudget()
    for part in (b"P", b"OST /v1/leases HTTP/1.1\r\n\r\n", bytes(9 * (MAX_UNEARNED + 1))):
        budget.count(part)
    assert not budget.is_spent
