"""Arbitrary and mutated bytes of a worker: its call fails, or the bytes were exactly the result that was due."""

import socket

import trio
from hypothesis import given
from hypothesis import strategies as st

from frontend.pool.channel import WorkerChannel, WorkerLost
from ipc.channel.framing import encode_frame
from ipc.limits import MAX_RESULT_FRAME
from ipc.messages.calling import Result, WorkerReady
from ipc.messages.control import AttachWorker
from tests.support.echo_worker import result_of
from tests.support.patience import PATIENT
from tests.support.worker_desk import call

CALL = call()
READY = encode_frame(WorkerReady("w", 1, "compute"), MAX_RESULT_FRAME)
DUE = encode_frame(result_of(CALL), MAX_RESULT_FRAME)
RETIRING = encode_frame(result_of(CALL, retiring=True), MAX_RESULT_FRAME)


async def exchange(greeting: bytes, answer: bytes) -> tuple[Result | str, bool]:
    ours, theirs = socket.socketpair()
    with theirs:
        channel = WorkerChannel(AttachWorker("w", "compute", 1, 0), ours, PATIENT.pool)
        try:
            theirs.sendall(greeting + (answer if greeting == READY else b""))
            theirs.shutdown(socket.SHUT_WR)
            await channel.greet()
            await channel.give(CALL)
            return await channel.result(CALL.call_id), channel.is_reusable
        except WorkerLost as lost:
            return lost.reason, channel.is_reusable
        finally:
            channel.close()


mutations = st.builds(
    lambda data, at, cut, new: data[: at % (len(data) + 1)] + new + data[at % (len(data) + 1) + cut :],
    st.sampled_from([DUE, READY, RETIRING, DUE + DUE, b""]),
    st.integers(0, 400),
    st.integers(0, 8),
    st.binary(max_size=8),
)


@given(mutations | st.binary(max_size=60))
def test_any_answer_is_the_one_that_is_due_or_costs_the_worker(answer: bytes) -> None:
    outcome, is_reusable = trio.run(exchange, READY, answer)
    assert not is_reusable
    if isinstance(outcome, Result):
        assert outcome.call_id == CALL.call_id
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    else:
        assert outcome in ("protocol broken", "channel closed")


@given(mutations | st.binary(max_size=60))
def test_any_greeting_but_the_announced_one_costs_the_worker(greeting: bytes) -> None:
    outcome, is_reusable = trio.run(exchange, greeting, DUE)
    if greeting != READY:
        assert isinstance(outcome, str)
        assert not is_reusable
