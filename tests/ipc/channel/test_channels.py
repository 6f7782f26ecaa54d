"""Both ends of a channel, over real sockets."""

import os
import resource
import socket
import threading

import pytest
import trio
import trio.testing

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.fds import DescriptorLost, take
from ipc.channel.framing import FrameError, encode_frame
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.messages.calling import FrontToWorker
from ipc.messages.forking import (
    KillForked,
    SpawnWorker,
    StartTemplate,
    SupervisorToTemplate,
    TemplateReady,
    TemplateToSupervisor,
    WorkerStarted,
)
from ipc.messages.modules import LoadModules, ModuleFile
from ipc.protocols.template import SUPERVISOR_TO_TEMPLATE, TEMPLATE_TO_SUPERVISOR

CAP = 65536
START = StartTemplate("/cache", "/files", 10)
STARTED = WorkerStarted("w", 1, 1)


def blocking_end(sock: socket.socket) -> BlockingChannel[SupervisorToTemplate]:
    sock.settimeout(60)
    return BlockingChannel(sock, SupervisorToTemplate, table=SUPERVISOR_TO_TEMPLATE, cap_in=CAP, cap_out=CAP)


def trio_end(sock: socket.socket) -> TrioChannel[TemplateToSupervisor]:
    return TrioChannel(
        sock, TemplateToSupervisor, table=TEMPLATE_TO_SUPERVISOR, cap_in=CAP, cap_out=CAP,
        carries_fds=True,
    )  # fmt: skip


def pair() -> tuple[BlockingChannel[SupervisorToTemplate], TrioChannel[TemplateToSupervisor]]:
    left, right = socket.socketpair()
    return blocking_end(left), trio_end(right)


async def test_messages_and_descriptors_cross_together_and_in_order() -> None:
    child, parent = pair()
    readers = []
    await parent.send(START)
    for number in range(3):
        reader, writer = os.pipe()
        readers.append(reader)
        await parent.send(SpawnWorker(f"w{number}", "http", "t"), (writer,))
        os.close(writer)
    assert child.receive() == START
    for number in range(3):
        message = child.receive()
        assert isinstance(message, SpawnWorker)
        descriptor = child.fds.popleft()
        assert not os.get_inheritable(descriptor)
        os.write(descriptor, message.worker_id.encode())
        assert os.read(readers[number], 10) == f"w{number}".encode()
        os.close(descriptor)
    for reader in readers:
        os.close(reader)
    child.close()
    parent.close()


async def test_untaken_descriptors_are_closed_with_the_channel() -> None:
    child, parent = pair()
    reader, writer = os.pipe()
    await parent.send(START)
    await parent.send(SpawnWorker("w", "http", "t"), (writer,))
    os.close(writer)
    child.receive()
    child.receive()
    child.close()
    with trio.fail_after(60):
        await trio.lowlevel.wait_readable(reader)
    assert os.read(reader, 1) == b""
    os.close(reader)
    parent.close()


async def test_a_message_out_of_turn_is_fatal_to_its_sender() -> None:
    left, right = socket.socketpair()
    child, parent = blocking_end(left), trio_end(right)
    left.sendall(encode_frame(WorkerStarted("w", 1, 1), CAP))
    with pytest.raises(ProtocolError, match="WorkerStarted while starting"):
        await parent.receive()
    right.send(encode_frame(KillForked("w"), CAP))
    with pytest.raises(ProtocolError, match="KillForked while new"):
        child.receive()
    child.close()
    parent.close()


async def test_a_message_out_of_turn_is_not_sent() -> None:
    child, parent = pair()
    with pytest.raises(ProtocolError, match="WorkerStarted while starting"):
        child.send(WorkerStarted("w", 1, 1))
    with pytest.raises(ProtocolError, match="KillForked while new"):
        await parent.send(KillForked("w"))
    child.send(TemplateReady())
    await parent.send(START)
    assert (child.receive(), await parent.receive()) == (START, TemplateReady())
    child.close()
    parent.close()


async def test_a_message_that_is_too_large_is_not_sent_and_moves_nothing() -> None:
    child, parent = pair()
    with pytest.raises(FrameError, match="exceeds the cap"):
        await parent.send(StartTemplate("x" * CAP, "/files", 10))
    await parent.send(START)
    assert child.receive() == START
    child.close()
    parent.close()


def test_no_channel_is_made_whose_sent_messages_nothing_checks() -> None:
    left, right = socket.socketpair()
    with left, right, pytest.raises(LookupError):
        BlockingChannel(left, FrontToWorker, table={}, cap_in=CAP, cap_out=CAP)


async def test_an_end_between_frames_differs_from_an_end_inside_one() -> None:
    child, parent = pair()
    child.close()
    with pytest.raises(ChannelClosed):
        await parent.receive()
    parent.close()
    left, right = socket.socketpair()
    parent = trio_end(right)
    left.sendall(encode_frame(TemplateReady(), CAP)[:-1])
    left.close()
    with pytest.raises(FrameError, match="inside a frame"):
        await parent.receive()
    parent.close()


async def test_a_send_cut_in_the_middle_breaks_the_channel_for_good() -> None:
    child, parent = pair()
    big = LoadModules("r", (ModuleFile("x" * (CAP - 100), None, ()),))
    await parent.send(START)

    async def send_for_ever() -> None:
        while True:
            await parent.send(big)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send_for_ever)
        await trio.testing.wait_all_tasks_blocked()  # the peer does not read: some frame is on its way
        nursery.cancel_scope.cancel()
    with pytest.raises(BrokenPipeError):
        await parent.send(big)
    child.close()
    parent.close()


async def test_a_send_that_waits_when_its_channel_is_closed_ends_as_one_to_a_peer_that_is_gone() -> None:
    child, parent = pair()
    big = LoadModules("r", (ModuleFile("x" * (CAP - 100), None, ()),))
    await parent.send(START)
    ends: list[OSError] = []

    async def send_until_the_end() -> None:
        try:
            while True:
                await parent.send(big)
        except OSError as end:
            ends.append(end)

    async with trio.open_nursery() as nursery:
        for _ in range(3):  # one waits for the peer, the others for that one
            nursery.start_soon(send_until_the_end)
        await trio.testing.wait_all_tasks_blocked()
        parent.close()
    assert len(ends) == 3
    child.close()


async def test_many_senders_never_mix_their_frames() -> None:
    child, parent = pair()
    got: list[str] = []

    def read() -> None:
        child.receive()
        for _ in range(200):
            message = child.receive()
            assert isinstance(message, SpawnWorker)
            got.append(message.worker_id)
            os.close(child.fds.popleft())

    thread = threading.Thread(target=read)
    thread.start()
    null = os.open(os.devnull, os.O_RDONLY)
    await parent.send(START)
    async with trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(parent.send, SpawnWorker(f"w{number}", "http", "t" * 500), (null,))
    await trio.to_thread.run_sync(thread.join, 60)
    os.close(null)
    assert sorted(got) == sorted(f"w{n}" for n in range(200))
    child.close()
    parent.close()


async def test_more_descriptors_than_the_cap_are_refused_and_none_leaks() -> None:
    left, right = socket.socketpair()
    parent = trio_end(right)
    before = len(os.listdir("/proc/self/fd"))
    null = os.open(os.devnull, os.O_RDONLY)
    socket.send_fds(left, [encode_frame(TemplateReady(), CAP)], [null] * 9)
    with pytest.raises(FrameError, match="descriptors"):
        await parent.receive()
    parent.close()
    left.close()
    os.close(null)
    assert len(os.listdir("/proc/self/fd")) <= before


def open_files() -> set[int]:
    """Without the one that lists them."""
    return {int(one) for one in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{one}")}


async def test_a_process_without_room_for_a_descriptor_still_gets_this_and_later_messages() -> None:
    left, right = socket.socketpair()
    parent = trio_end(right)
    null = os.open(os.devnull, os.O_RDONLY)
    held = open_files()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    socket.send_fds(left, [encode_frame(TemplateReady(), CAP)], [null, null])
    try:
        for room in (0, 1):  # none is received, and one of two
            limit = [one for one in range(soft) if one not in held][room]
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            if room:
                socket.send_fds(left, [encode_frame(STARTED, CAP)], [null, null])
            assert await parent.receive() == (STARTED if room else TemplateReady())
            with pytest.raises(DescriptorLost):
                take(parent.fds, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    socket.send_fds(left, [encode_frame(STARTED, CAP)], [null, null])
    assert await parent.receive() == STARTED
    for descriptor in take(parent.fds, 2):
        os.close(descriptor)
    parent.close()
    left.close()
    os.close(null)


async def test_descriptors_that_no_message_takes_end_the_channel() -> None:
    left, right = socket.socketpair()
    parent = trio_end(right)
    null = os.open(os.devnull, os.O_RDONLY)
    left.sendall(encode_frame(TemplateReady(), CAP))
    await parent.receive()
    with pytest.raises(FrameError, match="descriptors"):
        for _ in range(100):
            socket.send_fds(left, [encode_frame(STARTED, CAP)], [null])
            await parent.receive()
    parent.close()
    left.close()
    os.close(null)
