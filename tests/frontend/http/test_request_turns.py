"""Turns of users at the loop: the order in which requests begin, never how long they take."""

import os
from contextlib import ExitStack

import pytest
import trio

from frontend.http.answers import Answer, json_answer
from frontend.http.request_turns import ALONE, SHARED, SHARED_SECONDS, RequestTurns
from frontend.http.requests import Request
from frontend.http.server import ListeningSocket, Server
from ipc.settings import LimitSettings
from tests.support.http_socket import get
from tests.support.users import connected_as, open_to_all


class Loop:
    def __init__(self, nursery: trio.Nursery) -> None:
        self.now = 1000.0
        self.turns = RequestTurns(lambda: self.now)
        self.begun: list[str] = []
        self._nursery = nursery

    async def request(self, user: str) -> None:
        await self.turns.begin(user)
        self.begun.append(user)

    def send(self, user: str, count: int) -> None:
        for _ in range(count):
            self._nursery.start_soon(self.request, user)


async def test_with_a_hundred_requests_of_one_user_ready_another_users_begins_after_few_of_them() -> None:
    async with trio.open_nursery() as nursery:
        loop = Loop(nursery)
        trio.lowlevel.add_instrument(loop.turns)
        loop.send("flood", 1000)
        while len(loop.begun) < 100:
            await trio.lowlevel.checkpoint()
        for _ in range(2):  # what was woken before begins still
            before = len(loop.begun)
            await loop.request("polite")
            await trio.lowlevel.checkpoint()
            assert len(loop.begun) - before <= 1 + 2 * ALONE
        for _ in range(20):
            before = len(loop.begun)
            await trio.lowlevel.checkpoint()
            await loop.request("polite")
            assert len(loop.begun) - before <= 1 + 2 * SHARED, "both use the loop now"
        assert len(loop.turns) > 0, "the flood waits still"
        loop.now += SHARED_SECONDS
    trio.lowlevel.remove_instrument(loop.turns)
    assert loop.begun.count("flood") == 1000


async def test_a_lone_users_requests_begin_at_once_up_to_a_number_in_each_pass() -> None:
    async with trio.open_nursery() as nursery:
        loop = Loop(nursery)
        trio.lowlevel.add_instrument(loop.turns)
        for _ in range(ALONE):
            task = loop.request("agent")
            with pytest.raises(StopIteration):
                task.send(None)  # it ends without waiting
        loop.send("agent", 3)
    trio.lowlevel.remove_instrument(loop.turns)
    assert loop.begun == ["agent"] * (ALONE + 3)


async def test_requests_of_one_user_begin_in_the_order_in_which_they_came() -> None:
    async with trio.open_nursery() as nursery:
        turns, begun = RequestTurns(), list[int]()
        trio.lowlevel.add_instrument(turns)

        async def request(number: int) -> None:
            await turns.begin("agent")
            begun.append(number)

        came = []
        for number in range(200):
            came.append(number)
            nursery.start_soon(request, number)
            await trio.lowlevel.checkpoint()
    trio.lowlevel.remove_instrument(turns)
    assert begun == came


async def test_a_request_that_is_cut_while_it_waits_leaves_its_turn_to_the_next() -> None:
    async with trio.open_nursery() as outer:
        loop = Loop(outer)
        trio.lowlevel.add_instrument(loop.turns)
        async with trio.open_nursery() as cut:
            for _ in range(200):
                cut.start_soon(loop.request, "flood")
            while not loop.begun:
                await trio.lowlevel.checkpoint()
            cut.cancel_scope.cancel()
        assert len(loop.turns) == 0
        assert len(loop.begun) < 200
        with trio.fail_after(60):
            await loop.request("flood")
    trio.lowlevel.remove_instrument(loop.turns)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs other users")
async def test_a_user_with_hundreds_of_pipelined_requests_lets_another_users_begin_after_few() -> None:
    connections, ahead, served = 150, 300, list[int | None]()
    with open_to_all() as listener, ExitStack() as stack:
        path = listener.getsockname()

        async def respond(request: Request) -> Answer:
            served.append(request.uid)
            return json_answer(200, {})

        async with trio.open_nursery() as nursery:
            server = Server([ListeningSocket("client", listener)], respond, LimitSettings())
            polite = trio.socket.from_stdlib_socket(stack.enter_context(connected_as(1002, path)))
            for _ in range(connections):
                stack.enter_context(connected_as(1001, path)).sendall(get("/") * ahead)
            await nursery.start(server.run)
            while server.connections <= connections:
                await trio.lowlevel.checkpoint()
            for _ in range(5):
                before = len(served)
                await polite.send(get("/"))
                with trio.fail_after(60):
                    assert (await polite.recv(1 << 16)).startswith(b"HTTP/1.1 200")
                assert served[before:].count(1001) <= 3 * ALONE
            assert served.count(1001) < connections * ahead, "the flood goes on"
            nursery.cancel_scope.cancel()
