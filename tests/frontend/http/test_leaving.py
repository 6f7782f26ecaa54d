"""Sockets that outlive the gateway: what was accepted is served, what was not waits for the next one."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from frontend.http.server import ListeningSocket, serve
from ipc.settings import LimitSettings
from tests.support.http_socket import Running, connected, echo, get, until

LONG = 600.0
LIMITS = LimitSettings(
    header_timeout_seconds=LONG, body_timeout_seconds=LONG, idle_timeout_seconds=LONG, send_timeout_seconds=LONG
)


def listening(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()
    return sock


@asynccontextmanager
async def kept(folder: Path, *, stays_open: bool = True) -> AsyncIterator[Running]:
    """A server whose client socket another process holds too: this one."""
    kinds = {"client": stays_open, "admin": True, "metrics": True}
    with ExitStack() as held:
        doors = [
            ListeningSocket(kind, held.enter_context(listening(folder / kind)).dup(), stays)
            for kind, stays in kinds.items()
        ]
        async with trio.open_nursery() as nursery:
            server = await nursery.start(serve, doors, echo, LIMITS)
            yield Running(server, ("", 0), str(folder / "client"))
            nursery.cancel_scope.cancel()


@pytest.mark.large
async def test_a_connection_that_was_accepted_and_asked_nothing_yet_may_ask_once(tmp_path: Path) -> None:
    async with kept(tmp_path) as running, running.client(unix=True) as early, trio.open_nursery() as nursery:
        await until(lambda: running.server.connections == 1)
        nursery.start_soon(running.server.leave, LONG)
        await trio.testing.wait_all_tasks_blocked()
        reply = await early.ask(get("/late"))
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert await early.rest() == b""


async def test_one_that_was_served_and_is_idle_is_closed_at_once(tmp_path: Path) -> None:
    async with kept(tmp_path) as running, running.client(unix=True) as client:
        assert (await client.ask(get())).status == 200
        await running.server.leave(LONG)
        assert await client.rest() == b""


async def test_who_connects_then_is_not_accepted_and_is_served_by_whoever_accepts_next(tmp_path: Path) -> None:
    async with kept(tmp_path) as running:
        await running.server.leave(LONG)
        async with running.client(unix=True) as waiting:
            await waiting.send(get("/next"))
            await trio.testing.wait_all_tasks_blocked()
            assert running.server.connections == 0
            async with trio.open_nursery() as nursery:
                # The next gateway: the same socket, from the one who holds it.
                held = socket.socket(fileno=_descriptor(running.path))
                await nursery.start(serve, [ListeningSocket("client", held, True)], echo, LIMITS)
                assert (await waiting.reply()).json["path"] == "/next"
                nursery.cancel_scope.cancel()


def _descriptor(path: str) -> int:
    """A duplicate of the socket of this process that listens there."""
    for name in os.listdir("/proc/self/fd"):
        try:
            copy = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        try:
            if copy.family == socket.AF_UNIX and copy.getsockname() == path and is_listening(copy):
                return os.dup(copy.fileno())
        finally:
            copy.close()
    raise AssertionError(f"nobody here listens on {path}")


def is_listening(sock: socket.socket) -> bool:
    return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


@pytest.mark.parametrize("kind", ["admin", "metrics"])
async def test_a_watcher_is_served_until_the_end(tmp_path: Path, kind: str) -> None:
    async with kept(tmp_path) as running:
        await running.server.leave(LONG)
        async with connected(str(tmp_path / kind)) as watching:
            assert (await watching.ask(get())).json["listener"] == kind


async def test_one_that_asks_nothing_is_closed_when_its_time_is_over(tmp_path: Path) -> None:
    async with kept(tmp_path) as running, running.client(unix=True) as silent:
        await until(lambda: running.server.connections == 1)
        await running.server.leave(0.0)
        assert await silent.rest() == b""


@pytest.mark.parametrize("stays_open", [True, False])
async def test_calls_may_be_left_only_where_every_socket_for_them_stays_open(tmp_path: Path, stays_open: bool) -> None:
    async with kept(tmp_path, stays_open=stays_open) as running:
        assert running.server.may_be_left is stays_open
