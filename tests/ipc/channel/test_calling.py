"""The stream between a front and its worker: what may come when, and a message that is begun and finished later."""

import socket
import struct
import threading

import msgspec
import pytest
import trio

from ipc.channel.blocking import BlockingChannel
from ipc.channel.framing import FrameError, encode_frame
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.messages.calling import Drop, FrontToWorker, Result, Retire, Secrets, Verification, WorkerReady, WorkerToFront
from ipc.messages.message import Message
from ipc.protocols.worker import FRONT_TO_WORKER, WORKER_TO_FRONT
from tests.support.worker_plans import call_of, make_plan

CAP = 65536
LARGE = 3_000_000
READY = WorkerReady("w", 1, "compute")
RESULT = Result("c1", "success", "{}", None, Verification("skipped"), (), 1, 2, 3)


def worker_and_front() -> tuple[BlockingChannel[FrontToWorker], TrioChannel[WorkerToFront]]:
    left, right = socket.socketpair()
    left.settimeout(60)
    worker: BlockingChannel[FrontToWorker] = BlockingChannel(
        left, FrontToWorker, table=FRONT_TO_WORKER, cap_in=CAP, cap_out=CAP
    )
    front: TrioChannel[WorkerToFront] = TrioChannel(
        right, WorkerToFront, table=WORKER_TO_FRONT, cap_in=CAP, cap_out=CAP
    )
    return worker, front


def blocking_ends() -> tuple[BlockingChannel[FrontToWorker], BlockingChannel[WorkerToFront]]:
    """Both ends as they block: with timeouts of the kernel's, as a worker has them."""
    left, right = socket.socketpair()
    for sock in (left, right):
        for which in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, which, struct.pack("ll", 20, 0))
    return (
        BlockingChannel(left, FrontToWorker, table=FRONT_TO_WORKER, cap_in=CAP, cap_out=LARGE),
        BlockingChannel(right, WorkerToFront, table=WORKER_TO_FRONT, cap_in=LARGE, cap_out=CAP),
    )


async def test_a_worker_says_once_that_it_is_ready_and_results_after_that_alone() -> None:
    worker, front = worker_and_front()
    with pytest.raises(ProtocolError, match="Result while starting"):
        worker.send(RESULT)
    worker.send(READY)
    assert await front.receive() == READY
    with pytest.raises(ProtocolError, match="WorkerReady while serving"):
        worker.send(READY)
    for _ in range(2):
        worker.send(RESULT)
        assert await front.receive() == RESULT
    worker.close()
    front.close()


@pytest.mark.parametrize(("first", "second"), [(RESULT, None), (READY, READY)], ids=["result first", "ready twice"])
async def test_a_front_takes_nothing_of_a_worker_out_of_turn(first: Message, second: Message | None) -> None:
    left, right = socket.socketpair()
    front: TrioChannel[WorkerToFront] = TrioChannel(
        right, WorkerToFront, table=WORKER_TO_FRONT, cap_in=CAP, cap_out=CAP
    )
    for message in (first, second) if second else (first,):
        left.sendall(encode_frame(message, CAP))
    with trio.fail_after(20), pytest.raises(ProtocolError):
        await front.receive()
        await front.receive()
    left.close()
    front.close()


async def test_plans_come_while_others_run_and_none_after_a_worker_was_retired() -> None:
    worker, front = worker_and_front()
    calls = [call_of(make_plan(), f"c{number}") for number in range(3)]
    said: list[Message] = [*calls, Secrets("c1", {"a": "b"}), Drop("c2"), Retire()]
    for message in said:
        await front.send(message)
    assert [worker.receive() for _ in said] == said
    for message in (calls[0], Secrets("c1", {}), Drop("c1"), Retire()):
        with pytest.raises(ProtocolError, match="while retired"):
            await front.send(message)
    worker.close()
    front.close()


def test_a_message_that_was_begun_is_whole_once_it_is_finished() -> None:
    worker, front = blocking_ends()
    large = msgspec.structs.replace(RESULT, output="x" * (LARGE - 1000))
    assert not worker.begin(READY), "the socket takes all of it"
    rest = worker.begin(large)
    assert 0 < len(rest) < LARGE, "nobody reads: the socket takes a part, and begin does not wait"
    thread = threading.Thread(target=worker.finish, args=(rest,), daemon=True)
    thread.start()
    assert [front.receive(), front.receive()] == [READY, large]
    thread.join(60)
    rest = worker.begin(large)
    after = worker.begin(RESULT)
    assert len(after) == len(encode_frame(RESULT, CAP)), "a full socket takes nothing"
    worker.close()
    front.close()


def test_a_message_that_may_not_be_sent_is_not_begun() -> None:
    worker, front = blocking_ends()
    with pytest.raises(ProtocolError, match="Result while starting"):
        worker.begin(RESULT)
    worker.begin(READY)
    with pytest.raises(FrameError, match="exceeds the cap"):
        worker.begin(msgspec.structs.replace(RESULT, output="x" * LARGE))
    assert not worker.begin(RESULT)
    assert [front.receive(), front.receive()] == [READY, RESULT]
    worker.close()
    front.close()
