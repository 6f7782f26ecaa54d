"""Whether the egress proxy answers: what counts as an answer, and what a front makes of one that is down."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from frontend.deadlines import Deadlines, EgressDeadlines
from frontend.egress.proxy import MAX_LINE_BYTES, ProxyDown, asker
from tests.frontend.health.test_pulse import ready
from tests.support.front_core import API_KEY, Core, front_core, signed
from tests.support.patience import PATIENCE, PATIENT
from tests.support.played_proxy import Converse, proxy_that, saying
from tests.support.worker_desk import until


async def ask(url: str, deadlines: EgressDeadlines = PATIENT.egress, max_line_bytes: int = MAX_LINE_BYTES) -> None:
    question = asker(url, deadlines, max_line_bytes=max_line_bytes)
    assert question is not None
    with trio.fail_after(60):
        await question()


def test_without_a_proxy_there_is_nothing_to_ask() -> None:
    assert asker(None) is None


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "400 Bad Request", "403 Forbidden", "501 No", "503 No"])
async def test_any_answer_in_http_is_an_answer(status: str) -> None:
    for version in ("HTTP/1.1", "HTTP/1.0"):
        async with proxy_that(saying(f"{version} {status}\r\nContent-Length: 0\r\n\r\n".encode())) as url:
            await ask(url)


async def test_the_question_is_one_that_a_proxy_answers_itself() -> None:
    asked: list[bytes] = []

    async def converse(stream: trio.SocketStream) -> None:
        asked.append(await stream.receive_some(65536))
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")

    async with proxy_that(converse) as url:
        await ask(url)
    lines = asked[0].decode().split("\r\n")
    assert lines[0] == "OPTIONS * HTTP/1.1"
    assert {f"Host: {url.removeprefix('http://')}", "Max-Forwards: 0", "Connection: close"} <= set(lines)


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/2 200\r\n", b"HTTP/1.1 ok\r\n", b"HTTP/1.1", b"x" * (MAX_LINE_BYTES + 1)],
    ids=["nothing", "another protocol", "another version", "no status", "a piece", "no line"],
)
async def test_bytes_that_are_no_http_are_no_answer(answer: bytes) -> None:
    async with proxy_that(saying(answer)) as url:
        with pytest.raises(ProxyDown):
            await ask(url)


async def _silent(stream: trio.SocketStream) -> None:
    await stream.receive_some(65536)
    await trio.sleep_forever()


async def _dripping(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"H")
        await trio.sleep(0.01)


@pytest.mark.parametrize("converse", [_silent, _dripping])
async def test_a_proxy_that_takes_its_time_is_down(converse: Converse) -> None:
    async with proxy_that(converse) as url:
        with pytest.raises(ProxyDown, match="no answer within"):
            await ask(url, EgressDeadlines(ask_seconds=0.2), 1 << 30)


async def test_a_proxy_whose_port_is_closed_for_a_moment_is_not_down() -> None:
    often = EgressDeadlines(ask_seconds=60.0, pauses=(0.01,) * 1000)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, f"http://127.0.0.1:{taken.getsockname()[1]}", often)
            await trio.testing.wait_all_tasks_blocked()
            taken.listen()
            with socket.socket(fileno=(await trio.to_thread.run_sync(taken.accept))[0].detach()) as asked:
                asked.sendall(b"HTTP/1.1 501 Not Implemented\r\n\r\n")


async def test_a_proxy_without_a_listener_is_down() -> None:
    with socket.socket() as taken:  # bound, so that no other program gets the port
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ProxyDown):
            await ask(f"http://127.0.0.1:{taken.getsockname()[1]}")


# ------------------------------------------------------------------------------------------------ as a front sees it


QUICK = replace(PATIENT, health=replace(PATIENT.health, round_seconds=0.01, proxy_pause_seconds=0.01))
"""A front looks again at once, whatever the proxy said."""


@asynccontextmanager
async def front(folder: Path, url: str, deadlines: Deadlines = QUICK) -> AsyncIterator[Core]:
    async with front_core(folder, workers=0, deadlines=deadlines, egress_proxy_url=url) as core:
        yield core


async def becomes(core: Core, wanted: str) -> None:
    """Wait until readiness says so: 200 all the while."""
    with trio.fail_after(60):
        while True:
            status, body = await ready(core)
            assert status == 200
            if body["status"] == wanted:
                assert body["egress_proxy"] is (wanted == "ready")
                return
            await trio.sleep(0.01)


async def test_a_proxy_that_is_down_only_degrades_and_one_that_comes_back_is_seen(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 501 No\r\n\r\n"

    async def converse(stream: trio.SocketStream) -> None:
        await saying(answer)(stream)

    async with proxy_that(converse) as url, front(tmp_path, url) as core:
        await becomes(core, "ready")
        answer = b"nonsense\r\n"
        await becomes(core, "degraded")
        status = (await core.operate("GET", "/v1/admin/status"))[1]
        assert status["status"] == "ok", "only readiness is degraded"
        assert status["dependencies"] == {"redis": True, "opa": True, "egress_proxy": False}
        answer = b"HTTP/1.1 200 OK\r\n\r\n"
        await becomes(core, "ready")


async def test_a_front_starts_beside_a_proxy_that_hangs(tmp_path: Path) -> None:
    deadlines = replace(QUICK, egress=EgressDeadlines(ask_seconds=0.1))
    with trio.fail_after(PATIENCE):
        async with proxy_that(_silent) as url, front(tmp_path, url, deadlines) as core:
            await becomes(core, "degraded")


async def test_a_hanging_proxy_delays_no_caller(tmp_path: Path) -> None:
    health = replace(QUICK.health, overdue_seconds=600.0)
    deadlines = replace(QUICK, egress=EgressDeadlines(ask_seconds=600.0), health=health)
    asked = 0

    async def converse(stream: trio.SocketStream) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await saying(b"nonsense\r\n")(stream)
        else:
            await _silent(stream)  # for as long as this test looks

    async with proxy_that(converse) as url, front(tmp_path, url, deadlines) as core:
        await until(lambda: asked == 2)
        with trio.fail_after(60):
            for _ in range(5):
                assert (await ready(core))[1]["status"] == "degraded"
        assert asked == 2, "whoever looks asks it nothing"


async def test_a_proxy_that_answers_is_asked_less_often_than_the_core(tmp_path: Path) -> None:
    deadlines = replace(QUICK, health=replace(QUICK.health, proxy_pause_seconds=600.0))
    asked = 0

    async def converse(stream: trio.SocketStream) -> None:
        nonlocal asked
        asked += 1
        await saying(b"HTTP/1.1 200 OK\r\n\r\n")(stream)

    async with proxy_that(converse) as url, front(tmp_path, url, deadlines) as core:
        core.client.asked.clear()
        await until(lambda: core.client.asked.count("ReadLedger") >= 10)
        assert asked == 1


async def test_metrics_say_whether_the_proxy_answers_and_how_often_readiness_was_degraded(tmp_path: Path) -> None:
    nonsense = proxy_that(saying(b"nonsense\r\n"))
    async with nonsense as url, front(tmp_path, url) as core:
        await ready(core)
        answer = await core.ask("GET", "/metrics", b"", signed(core.operator_key, "GET", "/metrics", API_KEY))
    text = answer.body.decode()
    assert 'gate_dependency_up{dependency="egress_proxy"} 0' in text
    assert 'gate_readiness_degraded_total{reason="egress_proxy"} 1' in text
