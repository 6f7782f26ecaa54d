"""Bounds of sessions, with real servers and short times."""

import json
import os
import signal
import sys
from typing import Any

import psutil
import pytest
import trio
import trio.testing

from bridge.session import MAX_WAITING, BridgeSession, NotAccepted, SessionEnded
from bridge.sessions import BridgeSessions, NoServer
from tests.support.bridge_process import SERVER
from tests.support.http_socket import until
from tests.support.processes import is_running


def request(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def call(number: int, tool: str) -> bytes:
    return request(number, "tools/call", name=tool, arguments={})


async def until_ended(sessions: BridgeSessions, identifier: str) -> None:
    await until(lambda: sessions.find(identifier) is None)


async def test_a_server_that_does_not_answer_in_time_ends_its_session_and_itself(nursery: trio.Nursery) -> None:
    sessions = BridgeSessions(SERVER, nursery, answer_seconds=0.5)
    identifier, session = sessions.open()
    with pytest.raises(trio.TooSlowError):
        await session.ask(1, call(1, "hang"))
    await until_ended(sessions, identifier)
    with pytest.raises(SessionEnded):
        await session.ask(2, call(2, "count"))
    sessions.end_all("the test ended")


async def test_a_message_that_is_cut_on_its_way_ends_the_session(nursery: trio.Nursery) -> None:
    sessions = BridgeSessions((sys.executable, "-c", "import time; time.sleep(600)"), nursery)
    for send in ("tell", "ask"):
        identifier, session = sessions.open()
        message = request(1, "a", text="x" * 1_000_000)
        with trio.move_on_after(0.5) as waiting:
            await (session.tell(message) if send == "tell" else session.ask(1, message))
        assert waiting.cancelled_caught
        await until_ended(sessions, identifier)
        with pytest.raises(SessionEnded):
            await session.tell(request(2, "b"))
    sessions.end_all("the test ended")


async def test_an_idle_session_ends_and_one_that_waits_for_an_answer_does_not(nursery: trio.Nursery) -> None:
    sessions = BridgeSessions(SERVER, nursery, idle_seconds=0.2)
    idle, _ = sessions.open()
    waits, session = sessions.open()
    async with trio.open_nursery() as asking:

        async def ask() -> None:
            with pytest.raises(SessionEnded):
                await session.ask(1, call(1, "hang"))

        asking.start_soon(ask)
        await until_ended(sessions, idle)
        assert sessions.find(waits) is session
        session.end("the test ended")
    sessions.end_all("the test ended")


async def test_sessions_beyond_the_bound_are_refused_until_one_ends(nursery: trio.Nursery) -> None:
    sessions = BridgeSessions(SERVER, nursery, most=1)
    identifier, session = sessions.open()
    with pytest.raises(NoServer):
        sessions.open()
    session.end("the test ended")
    await until_ended(sessions, identifier)
    sessions.open()
    sessions.end_all("the test ended")


async def test_a_session_that_its_client_has_abandoned_makes_room_and_one_at_work_does_not(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.sessions.ABANDONED_SECONDS", 0.0)
    sessions = BridgeSessions(SERVER, nursery, most=2)
    abandoned, _ = sessions.open()
    at_work, session = sessions.open()
    with trio.CancelScope() as waiting:
        nursery.start_soon(session.ask, 1, call(1, "hang"))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(NoServer):
            sessions.open()
        await until_ended(sessions, abandoned)
        sessions.open()
        assert sessions.find(at_work) is session
        waiting.cancel()
    sessions.end_all("the test ended")


async def test_requests_beyond_the_bound_and_an_id_that_is_under_way_are_refused(nursery: trio.Nursery) -> None:
    sessions = BridgeSessions(SERVER, nursery)
    _, session = sessions.open()

    async def ask(number: int) -> None:
        with pytest.raises(SessionEnded):
            await session.ask(number, call(number, "hang"))

    async with trio.open_nursery() as asking:
        for number in range(MAX_WAITING):
            asking.start_soon(ask, number)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(NotAccepted, match="with this id"):
            await session.ask(1, call(1, "count"))
        with pytest.raises(NotAccepted, match=f"{MAX_WAITING} requests"):
            await session.ask(MAX_WAITING, call(MAX_WAITING, "count"))
        sessions.end_all("the test ended")


async def test_the_server_that_is_kept_ready_is_the_next_sessions_unless_it_has_ended(nursery: trio.Nursery) -> None:
    sessions = BridgeSessions(SERVER, nursery)
    known = _children()
    sessions.prepare()
    (ready,) = _children() - known
    first = await _pid_of(sessions.open()[1])
    assert first == ready
    (spare,) = _children() - known - {ready}
    os.kill(spare, signal.SIGKILL)
    await until(lambda: psutil.Process(spare).status() == psutil.STATUS_ZOMBIE)
    second = await _pid_of(sessions.open()[1])
    assert second not in {ready, spare}
    sessions.end_all("the test ended")
    await until(lambda: not any(map(is_running, (first, second))))


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


async def _pid_of(session: BridgeSession) -> int:
    answer = json.loads(await session.ask(1, call(1, "pid")))
    return int(answer["result"]["content"][0]["text"])


async def test_a_command_that_is_gone_opens_no_session(nursery: trio.Nursery) -> None:
    with pytest.raises(NoServer, match="can't be started"):
        BridgeSessions(("/no/such/program",), nursery).open()
