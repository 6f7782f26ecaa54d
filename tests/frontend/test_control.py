"""The front's end of the control channel, before a supervisor that is slow, stuck, gone or lying."""

import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import Mock, call

import pytest
import trio
import trio.testing

from frontend.control import MAX_UNSENT, Hears, SupervisorLink, SupervisorSilent
from frontend.deadlines import ControlDeadlines
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import encode_frame
from ipc.channel.front_memory import Layout, make_memory
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import (
    AttachWorker,
    FrontStatus,
    FrontToSupervisor,
    KillWorker,
    NeedWorker,
    Reload,
    StartFront,
    Stop,
    WorkerGone,
    WorkerServes,
)
from ipc.messages.message import Message
from ipc.messages.modules import LoadModules, ModuleFile, ModulesLoaded
from ipc.protocols.front import FRONT_TO_SUPERVISOR
from ipc.settings import Settings
from tests.support.worker_desk import until


class Supervisor:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel: TrioChannel[Message] = TrioChannel(
            sock, FrontToSupervisor, table=FRONT_TO_SUPERVISOR, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip

    async def say(self, message: Message) -> None:
        await self.channel.send(message)

    def say_out_of_turn(self, message: Message) -> None:
        self.sock.send(encode_frame(message, MAX_CONTROL_FRAME))


@asynccontextmanager
async def both(deadlines: ControlDeadlines = ControlDeadlines()) -> AsyncIterator[tuple[SupervisorLink, Supervisor]]:
    ours, theirs = socket.socketpair()
    control, supervisor = SupervisorLink(ours, deadlines), Supervisor(theirs)
    settings = Settings("/", "http://x")
    memory = make_memory(Layout.of(settings))
    await supervisor.channel.send(StartFront("front-1-a", (), settings, ()), (memory,))
    os.close(memory)
    os.close((await control.start())[2])
    try:
        yield control, supervisor
    finally:
        control.close()
        supervisor.channel.close()


async def test_what_is_posted_arrives_in_order() -> None:
    async with both() as (control, supervisor), trio.open_nursery() as nursery:
        nursery.start_soon(control.run, Mock(spec=Hears))
        for number in range(100):
            control.post(NeedWorker(str(number)))
        with trio.fail_after(60):
            messages = [await supervisor.channel.receive() for _ in range(100)]
        assert messages == [NeedWorker(str(number)) for number in range(100)]
        nursery.cancel_scope.cancel()


async def test_a_supervisor_that_does_not_read_delays_nobody_and_costs_bounded_memory() -> None:
    async with both() as (control, _), trio.open_nursery() as nursery:
        nursery.start_soon(control.run, Mock(spec=Hears))
        with trio.fail_after(60):
            for _ in range(20):
                for _ in range(MAX_UNSENT):
                    control.post(KillWorker("w", "x" * 1000))
                control.need_worker("compute")
                control.kill_worker("w", "r")
                control.replace_policy(1, "r")
                control.post_status(FrontStatus(0, 0, 0, 0))
                await trio.lowlevel.checkpoint()
        assert control._unsent_in.statistics().current_buffer_used <= MAX_UNSENT
        nursery.cancel_scope.cancel()


async def test_a_worker_that_serves_is_told_of_although_the_queue_was_full_and_so_many_at_most() -> None:
    async with both() as (control, supervisor), trio.open_nursery() as nursery:
        for _ in range(MAX_UNSENT):
            control.need_worker("compute")
        for number in range(2 * MAX_UNSENT):
            control.tell_serves(f"compute-{number}")
        nursery.start_soon(control.run, Mock(spec=Hears))
        with trio.fail_after(60):
            messages = [await supervisor.channel.receive() for _ in range(2 * MAX_UNSENT)]
        newest = [WorkerServes(f"compute-{number}") for number in range(MAX_UNSENT, 2 * MAX_UNSENT)]
        assert messages == [NeedWorker("compute"), *newest, *[NeedWorker("compute")] * (MAX_UNSENT - 1)]
        nursery.cancel_scope.cancel()


async def test_a_caller_that_is_cancelled_cuts_no_frame() -> None:
    async with both() as (control, supervisor), trio.open_nursery() as nursery:
        nursery.start_soon(control.run, Mock(spec=Hears))
        big = ModuleFile("sha256:" + "0" * 64, "/" + "x" * 500_000, ())
        async with trio.open_nursery() as loading:
            loading.start_soon(control.load_modules, (big,))
            await trio.testing.wait_all_tasks_blocked()
            loading.cancel_scope.cancel()
        control.post(NeedWorker("fs"))
        with trio.fail_after(60):
            assert isinstance(await supervisor.channel.receive(), LoadModules)
            assert await supervisor.channel.receive() == NeedWorker("fs")
        nursery.cancel_scope.cancel()


async def test_modules_that_are_never_loaded_are_an_answer_too(autojump_clock: trio.testing.MockClock) -> None:
    deadlines = ControlDeadlines(load_seconds=0.5)
    async with both(deadlines) as (control, supervisor), trio.open_nursery() as nursery:
        nursery.start_soon(control.run, Mock(spec=Hears))
        with pytest.raises(SupervisorSilent):
            await control.load_modules(())
        asked = await supervisor.channel.receive()
        assert isinstance(asked, LoadModules)
        await supervisor.say(ModulesLoaded(asked.request_id, 1, ()))  # too late: dropped
        await supervisor.say(ModulesLoaded("load_nobody", 1, ()))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def test_the_end_of_the_channel_ends_the_front() -> None:
    async with both() as (control, supervisor):
        supervisor.channel.close()
        with trio.fail_after(60), pytest.RaisesGroup(ChannelClosed):
            await control.run(Mock(spec=Hears))


async def test_a_message_that_the_table_does_not_allow_is_fatal() -> None:
    async with both() as (control, supervisor):
        await supervisor.say(Stop(1.0))
        supervisor.say_out_of_turn(Reload("r", "signal"))
        listener = Mock(spec=Hears)
        with trio.fail_after(60), pytest.RaisesGroup(ProtocolError):
            await control.run(listener)
        assert listener.method_calls == [call.stop(1.0)]


async def test_a_worker_whose_channel_could_not_be_received_is_lost_alone() -> None:
    listener = Mock(spec=Hears)
    lost, whole = AttachWorker("w1", "fs", 1, 1), WorkerGone("w2", "r")
    async with both() as (control, supervisor), trio.open_nursery() as nursery:
        held = {int(name) for name in os.listdir("/proc/self/fd")}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        null = os.open(os.devnull, os.O_RDONLY)
        held.add(null)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(set(range(soft)) - held), hard))
        try:
            await supervisor.channel.send(lost, (null,))
            await supervisor.say(whole)
            nursery.start_soon(control.run, listener)
            await until(lambda: len(listener.method_calls) == 2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.close(null)
        assert listener.method_calls == [call.channel_lost(lost), call.worker_gone(whole)]
        nursery.cancel_scope.cancel()
