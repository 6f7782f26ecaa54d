"""The body of a request that the gateway sends: read once a request, and nothing left of it when the peer goes away."""

import gc
import socket
import warnings
from pathlib import Path

import httpcore
import pytest
import trio

from frontend.http.client_bodies import OutgoingBody

LARGE = b"x" * 16_000_000
"""More than the buffers of a socket take, so the peer goes away while it is written."""


async def test_a_body_is_read_in_one_part_by_each_who_asks() -> None:
    body = OutgoingBody(b"whole")
    assert [[part async for part in body] for _ in range(2)] == [[b"whole"], [b"whole"]]


async def test_a_peer_that_leaves_while_the_body_is_written_leaves_nothing_to_be_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "peer.sock")
    listener = trio.socket.socket(socket.AF_UNIX)
    await listener.bind(path)
    listener.listen(1)

    async def hang_up() -> None:
        peer, _ = await listener.accept()
        await peer.recv(1)
        peer.close()

    length = [(b"content-length", str(len(LARGE)).encode())]
    connection = httpcore.AsyncHTTPConnection(httpcore.Origin(b"http", b"localhost", 80), uds=path)
    with listener, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hang_up)
            with pytest.raises((httpcore.NetworkError, httpcore.ProtocolError)):
                await connection.request("POST", "http://localhost/", headers=length, content=OutgoingBody(LARGE))
            await connection.aclose()
        gc.collect()
    assert not told
