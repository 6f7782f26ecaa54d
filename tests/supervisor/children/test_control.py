"""A control channel against a peer that behaves, and against ones that do not."""

import os
import socket

import pytest
import trio

from ipc.channel.blocking import BlockingChannel
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.control import AttachPolicy, Drain, Draining, FrontToSupervisor, StartFront, SupervisorToFront
from ipc.messages.message import Message
from ipc.messages.modules import ModulesLoaded
from ipc.protocols.front import FRONT_TO_SUPERVISOR, SUPERVISOR_TO_FRONT
from ipc.settings import Settings
from supervisor.children.control import MAX_QUEUED, Control

SETTINGS = Settings(state_dir="/s", public_base_url="http://h")


def control() -> Control[Message]:
    return Control(FrontToSupervisor, FRONT_TO_SUPERVISOR, socket.socketpair())


def front_end(one: Control[Message]) -> BlockingChannel[Message]:
    return BlockingChannel(
        one.child_end, SupervisorToFront, table=SUPERVISOR_TO_FRONT,
        cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME,
    )  # fmt: skip


async def test_messages_arrive_in_the_order_they_were_posted_with_their_descriptors() -> None:
    one = control()
    peer = front_end(one)
    read, write = os.pipe()
    one.post(StartFront("front-1-x", ("front-1-x",), SETTINGS, ()))
    one.post(AttachPolicy(pid=7), (read,))
    one.post(Drain())
    answered: list[Message] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.serve, answered.append)
        received = [await trio.to_thread.run_sync(peer.receive) for _ in range(3)]
        peer.send(Draining(0))
        with trio.fail_after(60):
            while not answered:
                await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert [type(message) for message in received] == [StartFront, AttachPolicy, Drain]
    assert answered == [Draining(0)]
    os.write(write, b"x")
    received_read = peer.fds.popleft()
    assert os.read(received_read, 1) == b"x"
    # Our read end is closed: with the copy gone too, the pipe has no reader.
    os.close(received_read)
    with pytest.raises(BrokenPipeError):
        os.write(write, b"x")
    os.close(write)
    peer.close()
    one.close()


async def test_a_peer_that_never_reads_is_given_up_when_the_queue_is_full_and_descriptors_are_closed() -> None:
    one = control()
    read, write = os.pipe()
    for _ in range(MAX_QUEUED):
        one.post(Drain())
    one.post(AttachPolicy(pid=7), (read,))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read)
    with trio.fail_after(60):
        assert await one.serve(lambda _: None) == "does not take its messages"
    os.close(write)
    one.close()


async def test_closing_closes_what_is_still_queued_and_later_posts_go_nowhere() -> None:
    one = control()
    read, write = os.pipe()
    second_read, second_write = os.pipe()
    one.post(AttachPolicy(pid=7), (read,))
    one.close()
    one.post(AttachPolicy(pid=8), (second_read,))
    for fd in (read, second_read):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    os.close(write)
    os.close(second_write)


async def test_descriptors_that_a_child_sends_are_dropped() -> None:
    one = control()
    answered: list[Message] = []
    front_end(one).send(Draining(0), (0,))
    before = set(os.listdir("/proc/self/fd"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.serve, answered.append)
        with trio.fail_after(60):
            while not answered:
                await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert set(os.listdir("/proc/self/fd")) <= before
    one.close()


async def test_a_child_that_leaves_with_messages_unread_has_closed_and_not_broken_the_protocol() -> None:
    one = control()
    one.post(StartFront("front-1-x", ("front-1-x",), SETTINGS, ()))
    async with trio.open_nursery() as nursery:

        async def leave() -> None:
            await trio.testing.wait_all_tasks_blocked()
            one.child_end.close()

        nursery.start_soon(leave)
        with trio.fail_after(60):
            assert await one.serve(lambda _: None) == "closed its channel and did not leave"
    assert one.was_closed
    one.close()


async def test_a_message_that_a_child_may_not_get_yet_ends_the_channel_with_a_reason() -> None:
    one = control()
    peer = front_end(one)
    one.post(Drain())
    with trio.fail_after(60):
        assert await one.serve(lambda _: None) == "could not be sent Drain: Drain while new"
    one.close()
    peer.close()


async def test_a_message_that_can_not_be_encoded_costs_its_child_alone() -> None:
    one = control()
    peer = front_end(one)
    one.post(StartFront("front-1-x", ("front-1-x",), SETTINGS, ()))
    one.post(ModulesLoaded("load", 1 << 64, ()))
    with trio.fail_after(60):
        assert "could not be sent ModulesLoaded" in await one.serve(lambda _: None)
    one.close()
    peer.close()


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (b"", "closed its channel"),
        (b"\x00\x00", "ended inside a frame"),
        (b"\x7f\xff\xff\xff", "exceeds the cap"),
        (b"\x00\x00\x00\x01\x00", "not a message of this direction"),
    ],
)
async def test_any_other_message_of_a_child_ends_the_channel_with_a_reason(sent: bytes, fault: str) -> None:
    one = control()
    one.child_end.sendall(sent)
    one.child_end.shutdown(socket.SHUT_WR)
    with trio.fail_after(60):
        assert fault in await one.serve(lambda _: None)
    assert one.was_closed == (sent == b"")
    one.close()
