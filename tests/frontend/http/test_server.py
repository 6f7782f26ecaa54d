"""Listening sockets: ceilings, making room, want of file descriptors, drain."""

import socket
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack
from functools import partial

import pytest
import trio

from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.http.server import ListeningSocket, Server
from ipc.settings import LimitSettings
from tests.support.http_socket import Client, Running, Serving, connected, echo, get, until
from tests.support.logs import capture_logs


class Gate:
    def __init__(self) -> None:
        self.entered = 0
        self.open = trio.Event()

    async def respond(self, request: Request) -> Answer:
        if request.path == "/wait":
            self.entered += 1
            await self.open.wait()
        return json_answer(200, {})

    async def occupy(self, running: Running, stack: AsyncExitStack, count: int) -> list[Client]:
        clients = [await stack.enter_async_context(running.client()) for _ in range(count)]
        for client in clients:
            await client.send(get("/wait"))
        await until(lambda: self.entered == count)
        return clients


async def test_at_the_ceiling_a_newcomer_gets_overloaded_and_others_are_untouched(serving: Serving) -> None:
    gate = Gate()
    async with serving(gate.respond, max_connections=2) as running, AsyncExitStack() as stack:
        clients = await gate.occupy(running, stack, 2)
        async with running.client() as newcomer:
            reply = await newcomer.ask(get("/"))
            assert (reply.status, reply.json) == (503, {"error": "overloaded"})
            assert (reply.headers["retry-after"], reply.headers["connection"]) == ("1", "close")
            assert await newcomer.rest() == b""
        gate.open.set()
        assert [(await client.reply()).status for client in clients] == [200, 200]


async def test_a_flood_of_one_listener_does_not_take_the_other_one_s_place(serving: Serving) -> None:
    gate = Gate()
    async with serving(gate.respond, max_connections=2) as running, AsyncExitStack() as stack:
        await gate.occupy(running, stack, 2)
        async with running.client(unix=True) as other:
            assert (await other.ask(get("/"))).status == 200
        gate.open.set()


async def test_at_the_ceiling_the_connection_idle_longest_makes_room(serving: Serving) -> None:
    async with serving(max_connections=3, min_idle_seconds=0.0) as running, AsyncExitStack() as stack:
        clients = await full(running, stack)
        async with running.client() as newcomer:
            assert (await newcomer.ask(get("/"))).status == 200
        assert await clients[0].rest() == b""
        assert [(await client.ask(get("/"))).status for client in clients[1:]] == [200, 200]


async def test_no_connection_makes_room_before_it_has_been_idle_for_a_moment(serving: Serving) -> None:
    async with serving(max_connections=3, min_idle_seconds=600.0) as running, AsyncExitStack() as stack:
        clients = await full(running, stack)  # their next requests may be on the way
        async with running.client() as newcomer:
            assert (await newcomer.ask(get("/"))).status == 503
        assert [(await client.ask(get("/"))).status for client in clients] == [200] * 3


async def full(running: Running, stack: AsyncExitStack) -> list[Client]:
    clients = [await stack.enter_async_context(running.client()) for _ in range(3)]
    for client in clients:
        assert (await client.ask(get("/"))).status == 200
    return clients


async def test_each_connection_is_closed_once_it_has_idled_for_as_long_as_is_allowed(
    serving: Serving, mock_clock: trio.testing.MockClock
) -> None:
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(serving(idle_timeout_seconds=75.0))
        silent, one, other = [await stack.enter_async_context(running.client()) for _ in range(3)]
        for client in (one, other):  # their answers say that the one before them was accepted, too
            assert (await client.ask(get("/"))).status == 200
        for seconds, left in ((50, 3), (30, 1), (44, 1), (2, 0)):
            mock_clock.jump(seconds)
            await trio.testing.wait_all_tasks_blocked()
            assert running.server.connections == left
            if left == 3:
                assert (await one.ask(get("/"))).status == 200
        for client in (one, other, silent):
            assert await client.rest() == b""


async def test_a_call_that_takes_longer_than_a_connection_may_idle_is_answered(
    serving: Serving, mock_clock: trio.testing.MockClock
) -> None:
    started, finish = trio.Event(), trio.Event()

    async def slow(_request: Request) -> Answer:
        started.set()
        await finish.wait()
        return json_answer(200, {})

    async with serving(slow, idle_timeout_seconds=75.0) as running, running.client() as client:
        await client.send(get("/"))
        await started.wait()
        mock_clock.jump(100)
        await trio.testing.wait_all_tasks_blocked()
        finish.set()
        assert (await client.reply()).status == 200
        assert (await client.ask(get("/"))).status == 200


async def test_drain_closes_idle_connections_at_once_and_lets_answers_finish(serving: Serving) -> None:
    gate = Gate()
    async with serving(gate.respond) as running, AsyncExitStack() as stack:
        (busy,) = await gate.occupy(running, stack, 1)
        idle = await stack.enter_async_context(running.client())
        assert (await idle.ask(get("/"))).status == 200
        fresh = await stack.enter_async_context(running.client())
        await until(lambda: running.server.connections == 3)
        clean: list[bool] = []
        async with trio.open_nursery() as nursery:

            async def drain() -> None:
                clean.append(await running.server.drain(60))

            nursery.start_soon(drain)
            assert await idle.rest() == await fresh.rest() == b""
            assert clean == []
            gate.open.set()
            reply = await busy.reply()
            assert (reply.status, reply.headers["connection"]) == (200, "close")
            await busy.stream.aclose()
        assert clean == [True]
        assert running.server.connections == 0


async def test_a_request_that_was_on_its_way_when_drain_began_is_answered(serving: Serving) -> None:
    gate = Gate()
    async with serving(gate.respond) as running, running.client(unix=True) as client:
        await client.ask(get("/"))
        with socket.socket(fileno=socket.dup(client.stream.socket.fileno())) as plain:
            plain.send(get("/late"))
        # No await has happened yet, so the server has not seen these bytes when the drain begins. They are there: a
        # Unix socket's peer has them once they are sent.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.server.drain, 60)
            assert (await client.reply()).status == 200
            assert await client.rest() == b""
            await client.stream.aclose()


async def test_drain_cuts_what_is_left_at_its_deadline(serving: Serving) -> None:
    gate = Gate()
    async with serving(gate.respond) as running, AsyncExitStack() as stack:
        (busy,) = await gate.occupy(running, stack, 1)
        with capture_logs() as logs:
            assert not await running.server.drain(0.05)
        assert await busy.rest() == b""
        assert [line["connections"] for line in logs] == [1]


async def test_no_connection_is_accepted_after_a_drain(serving: Serving) -> None:
    async with serving() as running:
        assert await running.server.drain(60)
        for unix in (False, True):
            with pytest.raises(ConnectionRefusedError):
                await running.client(unix=unix).__aenter__()


async def test_a_listener_that_another_process_shares_stays_open_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as shared:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                listener = ListeningSocket("merged", socket.socket(fileno=socket.dup(shared.fileno())))
                server = await nursery.start(Server([listener], echo, LimitSettings()).run)
                async with connected(shared.getsockname()) as client:
                    assert (await client.ask(get("/"))).status == 200
                assert await server.drain(60)


STARVED = """
import resource, socket, sys, trio
from frontend.http.answers import json_answer
from frontend.http.server import ListeningSocket, serve
from ipc.settings import LimitSettings
async def respond(request):
    return json_answer(200, {})
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
listener = ListeningSocket("merged", socket.socket(fileno=int(sys.argv[1])))
trio.run(serve, [listener], respond, LimitSettings())
"""


async def test_want_of_file_descriptors_is_survived() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        command = [sys.executable, "-c", STARVED, str(listener.fileno())]
        async with trio.open_nursery() as nursery:
            start = partial(
                trio.run_process, command, pass_fds=[listener.fileno()], stderr=subprocess.PIPE, check=False
            )
            process = await nursery.start(start)
            with ExitStack() as crowd:
                for _ in range(40):
                    crowd.enter_context(socket.create_connection(address, timeout=120))
                with trio.fail_after(60):
                    log = b""
                    while b"EMFILE" not in log:
                        log += await process.stderr.receive_some()
            async with connected(address) as client:
                assert (await client.ask(get("/"))).status == 200
            nursery.cancel_scope.cancel()
