"""Readers of a front: one at a time, each gone after its answer, at its deadline, and with its front."""

import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ipc.messages.control import AttachReader, NeedReader
from ipc.messages.message import Message
from ipc.settings import Settings
from supervisor.children.children import Children
from supervisor.keepers.readers import ReaderKeeper
from supervisor.programs import Programs
from supervisor.state import SupervisorState
from tests.support.logs import capture_logs
from tests.support.supervised import wait_until

WAITS = ("tests.supervisor.programs.fake_reader",)


class PlayedFront:
    """Hears of its readers."""

    def __init__(self) -> None:
        self.readers: list[tuple[AttachReader, socket.socket]] = []
        self.heard = trio.Event()

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        assert isinstance(message, AttachReader)
        self.readers.append((message, socket.socket(fileno=fds[0])))
        self.heard.set()

    async def reader(self) -> tuple[AttachReader, socket.socket]:
        """The next one."""
        with trio.fail_after(60):
            await self.heard.wait()
        self.heard = trio.Event()
        return self.readers[-1]

    def close(self) -> None:
        for _, sock in self.readers:
            sock.close()


@asynccontextmanager
async def keeper(seconds: float = 600.0) -> AsyncIterator[tuple[ReaderKeeper, PlayedFront, trio.CancelScope]]:
    """A keeper at work, the front it posts to, and the scope of its life."""
    settings = Settings(state_dir="/nowhere", public_base_url="http://h")
    state = SupervisorState(settings, Programs(reader=WAITS), Children(os.environ))
    kept, front = ReaderKeeper(state, seconds), PlayedFront()

    async def reap(task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGCHLD) as ended:
            task_status.started()
            async for _ in ended:
                state.children.reap()

    async with trio.open_nursery() as nursery:
        await nursery.start(reap)
        life = trio.CancelScope()

        async def live() -> None:
            with life:
                await kept.run(front.post)

        nursery.start_soon(live)
        try:
            yield kept, front, life
        finally:
            life.cancel()
            for reader, _ in front.readers:
                await gone(reader.pid)
            front.close()
            nursery.cancel_scope.cancel()


async def gone(pid: int) -> None:
    """Until a child was reaped."""
    await trio.to_thread.run_sync(wait_until, lambda: not os.path.exists(f"/proc/{pid}"))


async def test_a_reader_is_started_for_each_request_once_the_one_before_has_ended() -> None:
    async with keeper() as (kept, front, _):
        kept.need(NeedReader("read_1"))
        first, sock = await front.reader()
        assert first.request_id == "read_1"
        for number in (2, 3):
            kept.need(NeedReader(f"read_{number}"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(front.readers) == 1
        sock.sendall(b"x")
        second, _ = await front.reader()
        assert second.request_id == "read_3"
        await gone(first.pid)


async def test_a_reader_is_killed_at_its_deadline() -> None:
    with capture_logs() as lines:
        async with keeper(seconds=0.2) as (kept, front, _):
            kept.need(NeedReader("read_1"))
            reader, sock = await front.reader()
            assert await trio.to_thread.run_sync(sock.recv, 1) == b""
            await gone(reader.pid)
            await trio.testing.wait_all_tasks_blocked()
    assert [line["event"] for line in lines] == ["reader is killed: it had no answer within 0.2 s"]


async def test_a_reader_ends_with_the_life_of_its_front() -> None:
    async with keeper() as (kept, front, life):
        kept.need(NeedReader("read_1"))
        reader, _ = await front.reader()
        life.cancel()
        await gone(reader.pid)
