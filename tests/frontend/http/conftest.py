"""A real server on real sockets."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from frontend.http.server import MIN_IDLE_SECONDS, ListeningSocket, serve
from ipc.settings import LimitSettings
from tests.support.http_socket import Respond, Running, Serving, echo

PATIENT = {
    "header_timeout_seconds": 600.0, "body_timeout_seconds": 600.0, "idle_timeout_seconds": 600.0,
    "send_timeout_seconds": 600.0,
}  # fmt: skip
"""The default limits of a test: long enough for a machine that stalls."""


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    numbers = count()

    @asynccontextmanager
    async def start(
        respond: Respond = echo, *, min_idle_seconds: float = MIN_IDLE_SECONDS, **limits: Any
    ) -> AsyncIterator[Running]:
        tcp = socket.create_server(("127.0.0.1", 0))
        unix = socket.socket(socket.AF_UNIX)
        path = f"{tmp_path}/{next(numbers)}"
        unix.bind(path)
        unix.listen()
        running: Running
        async with trio.open_nursery() as nursery:
            server = await nursery.start(
                partial(serve, min_idle_seconds=min_idle_seconds),
                [ListeningSocket("merged", tcp), ListeningSocket("client", unix)],
                respond,
                LimitSettings(**(PATIENT | limits)),
            )
            running = Running(server, tcp.getsockname(), path)
            yield running
            nursery.cancel_scope.cancel()

    return start
