"""Users of one listening socket, none of whom can keep the others out, and a watcher's notifications of connections."""

import os
import socket
from contextlib import ExitStack
from unittest.mock import Mock, call

import pytest
import trio

from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.http.server import SCRAPERS, ListeningSocket, Server
from frontend.http.traffic import Traffic
from ipc.settings import LimitSettings
from tests.support.http_socket import connected, echo, get, until
from tests.support.users import connected_as, open_to_all


@pytest.mark.skipif(os.geteuid() != 0, reason="needs other users")
async def test_a_user_who_opens_all_they_can_leaves_room_for_others() -> None:
    watcher = Mock(spec=Traffic)
    with open_to_all() as listener, ExitStack() as stack:
        path = listener.getsockname()
        limits = LimitSettings(max_connections=64, header_timeout_seconds=600.0)

        async with trio.open_nursery() as nursery:
            server = Server([ListeningSocket("client", listener)], echo, limits, watcher)
            await nursery.start(server.run)
            for _ in range(100):
                stack.enter_context(connected_as(1001, path)).sendall(b"GET /slow")  # a head that never ends
            await until(lambda: len(watcher.method_calls) == 100)
            opened = watcher.opened.mock_calls.count(call("client"))
            assert (opened, watcher.turned.mock_calls.count(call("client"))) == (48, 52), "three quarters of 64"
            for uid in range(1002, 1010):
                client = stack.enter_context(connected_as(uid, path))
                client.setblocking(False)
                async with connected(path) as another:
                    assert (await another.ask(get("/"))).status == 200
                await trio.socket.from_stdlib_socket(client).send(get("/"))
                with trio.fail_after(60):
                    assert (await trio.socket.from_stdlib_socket(client).recv(15)).startswith(b"HTTP/1.1 200")
            nursery.cancel_scope.cancel()


async def test_whoever_watches_hears_of_every_connection_and_of_answers_that_nobody_else_gave() -> None:
    watcher = Mock(spec=Traffic)

    async def respond(request: Request) -> Answer:
        if request.path == "/fails":
            raise RuntimeError
        return json_answer(200, {})

    with socket.create_server(("127.0.0.1", 0)) as shared:
        listener = ListeningSocket("merged", socket.socket(fileno=socket.dup(shared.fileno())))
        async with trio.open_nursery() as nursery:
            # However long this takes, no idle connection makes room for another.
            limits = LimitSettings(max_connections=1)
            server = await nursery.start(Server([listener], respond, limits, watcher, min_idle_seconds=600.0).run)
            for data, status in ((get("/"), 200), (get("/fails"), 500), (b"GET nonsense HTTP/9\r\n\r\n", 400)):
                async with connected(shared.getsockname()) as client:
                    assert (await client.ask(data)).status == status
                    if status == 200:
                        async with connected(shared.getsockname()) as late:
                            assert (await late.ask(get("/"))).status == 503
                await until(lambda: server.connections == 0)
            assert await server.drain(60)
    for told, times in ((watcher.opened, 3), (watcher.closed, 3), (watcher.turned, 1)):
        assert told.mock_calls == [call("merged")] * times
    assert watcher.answered_itself.mock_calls == [call(500), call(400)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs other users")
async def test_a_user_who_reads_nothing_keeps_others_answers_from_nobody() -> None:
    watcher, body = Mock(spec=Traffic), b"x" * 4_000_000
    with open_to_all() as listener, ExitStack() as stack:
        path = listener.getsockname()

        async def respond(_request: Request) -> Answer:
            return Answer(200, body)

        async with trio.open_nursery() as nursery:
            limits = LimitSettings(max_unsent_bytes=40_000_000, send_timeout_seconds=600.0)
            server = await nursery.start(Server([ListeningSocket("client", listener)], respond, limits, watcher).run)
            for _ in range(20):
                stack.enter_context(connected_as(1001, path)).sendall(get("/"))
            await until(lambda: watcher.cut.mock_calls.count(call("client")) == 16)
            await until(lambda: server.connections == 4)  # less than half, with their heads
            slow = stack.enter_context(connected_as(1002, path))
            slow.sendall(get("/"))
            await until(lambda: server.connections == 5)
            for _ in range(20):
                stack.enter_context(connected_as(1001, path)).sendall(get("/"))
            await until(lambda: watcher.opened.mock_calls.count(call("client")) == 41)
            slow.setblocking(False)
            taken = 0
            with trio.fail_after(60):
                while taken < len(body):
                    taken += len(await trio.socket.from_stdlib_socket(slow).recv(1 << 20))
            nursery.cancel_scope.cancel()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs other users")
async def test_a_user_with_few_connections_may_take_the_place_of_an_idle_one_of_somebody_else() -> None:
    with open_to_all() as listener, ExitStack() as stack:
        path, watcher = listener.getsockname(), Mock(spec=Traffic)
        async with trio.open_nursery() as nursery:
            listeners, limits = [ListeningSocket("client", listener)], LimitSettings(max_connections=16)
            server = Server(listeners, echo, limits, watcher, min_idle_seconds=0.05)
            await nursery.start(server.run)

            async def served(sock: socket.socket) -> bool:
                sock.setblocking(False)
                wrapped = trio.socket.from_stdlib_socket(sock)
                await wrapped.send(get("/"))
                with trio.fail_after(60):
                    return (await wrapped.recv(12)) == b"HTTP/1.1 200"

            others = [stack.enter_context(connected_as(uid, path)) for uid in range(2001, 2017)]
            assert all([await served(sock) for sock in others]), "sixteen users, and no place is free"
            with trio.fail_after(60):
                while not await served(stack.enter_context(connected_as(2001, path))):  # noqa: ASYNC110
                    await trio.sleep(0.05)
            assert watcher.opened.mock_calls.count(call("client")) > 16
            nursery.cancel_scope.cancel()


async def test_connections_without_a_user_take_few_of_what_the_metrics_socket_may_have() -> None:
    watcher = Mock(spec=Traffic)

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener, ExitStack() as crowd:
        address = listener.getsockname()
        server = Server([ListeningSocket("metrics", listener)], echo, LimitSettings(), watcher)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            for _ in range(SCRAPERS + 8):
                half = crowd.enter_context(socket.create_connection(address, timeout=120))
                half.sendall(b"GET /metrics HTTP/1.1\r\n")
            await until(lambda: watcher.turned.mock_calls.count(call("metrics")) == 8)
            assert server.connections == SCRAPERS
            nursery.cancel_scope.cancel()
