"""The front's end of a reader: asked for, heard to its end, given up in time; one at a time."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from contract.audit import ChainReport
from frontend.notary.errors import NotaryUnavailable
from frontend.notary.readers import Readers
from ipc.channel.framing import encode_frame
from ipc.limits import MAX_READER_FRAME
from ipc.messages.control import AttachReader, NeedReader
from ipc.messages.message import Message
from ipc.messages.reading import ChainVerified, NotRead, VerifyChain, Walking
from tests.support.logs import capture_logs

REPORT = ChainReport(
    intact=True, events_checked=7, broken_at=None, total_events=7, verified_links=6, reason=None
)  # fmt: skip


class PlayedSupervisor:
    """Starts a reader for every request, at once or when a test says so, and plays it, too."""

    def __init__(self, plays: Callable[[socket.socket], Any] | None) -> None:
        self.asked: list[str] = []
        self.ends: list[socket.socket] = []
        self.readers = Readers(self.post, seconds=600.0)
        self._plays = plays

    def post(self, message: Message) -> None:
        assert isinstance(message, NeedReader)
        self.asked.append(message.request_id)
        if self._plays is not None:
            self._plays(self.start(message.request_id))

    def start(self, request_id: str) -> socket.socket:
        """The reader's end of a fresh channel."""
        ours, theirs = socket.socketpair()
        self.ends.append(ours)
        self.readers.attach(AttachReader(request_id, 7), theirs)
        return ours

    def close(self) -> None:
        for end in self.ends:
            end.close()


def framed(*messages: Message) -> bytes:
    return b"".join(encode_frame(message, MAX_READER_FRAME) for message in messages)


def test_a_walk_is_heard_to_its_end_and_told_in_the_log() -> None:
    supervisor = PlayedSupervisor(lambda end: end.sendall(framed(Walking(0), Walking(3), ChainVerified(REPORT))))
    with capture_logs() as lines:
        assert trio.run(supervisor.readers.verify, "ada") == REPORT
    assert [line["event"] for line in lines] == ["the chain is intact"]
    assert supervisor.ends[0].recv(4096) == framed(VerifyChain())
    assert supervisor.ends[0].recv(4096) == b""
    supervisor.close()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (framed(Walking(0)), "ended before its answer"),
        (framed(NotRead("the file is gone")), "the file is gone"),
        (framed(Walking(0))[:-1], "broke the protocol"),
        (framed(VerifyChain()), "broke the protocol"),
        ((MAX_READER_FRAME + 1).to_bytes(4, "big"), "broke the protocol"),
        (b"", "ended before its answer"),
    ],
)
async def test_a_reader_without_an_answer_is_an_unavailable_ledger(said: bytes, why: str) -> None:
    def play(end: socket.socket) -> None:
        end.sendall(said)
        end.shutdown(socket.SHUT_WR)

    supervisor = PlayedSupervisor(play)
    with pytest.raises(NotaryUnavailable, match=why):
        await supervisor.readers.verify("ada")
    supervisor.close()


async def test_a_reader_that_says_nothing_is_given_up_at_the_deadline(autojump_clock: trio.testing.MockClock) -> None:
    supervisor = PlayedSupervisor(lambda end: end.sendall(framed(Walking(0))))
    began = trio.current_time()
    with pytest.raises(NotaryUnavailable, match="no answer within 600 s"):
        await supervisor.readers.verify("ada")
    assert 600 <= trio.current_time() - began <= 660
    assert supervisor.ends[0].recv(4096) + supervisor.ends[0].recv(4096) == framed(VerifyChain())
    supervisor.close()


async def test_a_reader_that_comes_too_late_is_let_go(autojump_clock: trio.testing.MockClock) -> None:
    supervisor = PlayedSupervisor(None)
    with pytest.raises(NotaryUnavailable, match="no reader was started"):
        await supervisor.readers.verify("ada")
    late = supervisor.start(supervisor.asked[0])
    assert late.recv(1) == b""
    supervisor.close()


async def test_a_second_walk_waits_for_the_first_and_a_cancelled_one_lets_its_reader_go() -> None:
    supervisor = PlayedSupervisor(lambda _end: None)
    reports: list[ChainReport] = []

    async def ask() -> None:
        reports.append(await supervisor.readers.verify("ada"))

    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()

        async def ask_in_scope() -> None:
            with first:
                await ask()

        nursery.start_soon(ask_in_scope)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert len(supervisor.asked) == 1
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert len(supervisor.asked) == 2
        assert supervisor.ends[0].recv(4096) + supervisor.ends[0].recv(4096) == framed(VerifyChain())
        supervisor.ends[1].sendall(framed(ChainVerified(REPORT)))
    assert reports == [REPORT]
    supervisor.close()


async def test_a_walk_that_waits_too_long_for_others_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    supervisor = PlayedSupervisor(lambda end: end.sendall(framed(Walking(0))))
    why: list[str] = []

    async def ask() -> None:
        with pytest.raises(NotaryUnavailable) as refused:
            await supervisor.readers.verify("ada")
        why.append(str(refused.value))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
    assert sorted(why) == ["no answer within 600 s"] + ["other walks were under way for 600 s"] * 2
    assert len(supervisor.asked) == 1
    supervisor.close()


async def test_an_operator_with_many_walks_waits_for_those_of_others(autojump_clock: trio.testing.MockClock) -> None:
    supervisor = PlayedSupervisor(None)
    answered: list[str] = []

    async def ask(operator: str) -> None:
        await supervisor.readers.verify(operator)
        answered.append(operator)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(ask, "ada")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, "bob")
        for walk in range(5):
            await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(20)
            supervisor.start(supervisor.asked[walk]).sendall(framed(ChainVerified(REPORT)))
    assert answered.index("bob") == 1
    supervisor.close()
