"""One worker: what it says is believed only in its turn, whole, and about its own call."""

import os
import signal
import socket

import pytest
import trio
from msgspec.structs import replace

from frontend.pool.channel import WorkerLost
from frontend.pool.pool import Census
from ipc.channel.framing import FrameError
from ipc.limits import MAX_CALL_FRAME
from ipc.messages.control import AttachWorker
from tests.support.echo_worker import HOSTILE
from tests.support.patience import PATIENT
from tests.support.worker_desk import Pooling, call, until

SHORT_GRACE = replace(PATIENT.pool, grace_seconds=0.2)
REASONS = ("protocol broken", "channel closed", "no result in time")


async def test_a_call_comes_back_with_its_result(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        for number in range(1, 4):
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                result = await desk.run(worker, call(call_id=f"call-{number}", provider_input=f'{{"n":{number}}}'))
            assert (result.call_id, result.output, result.io_calls) == (f"call-{number}", f'{{"n":{number}}}', number)
        assert desk.kills == []


async def test_calls_and_results_of_megabytes_pass(pooling: Pooling) -> None:
    async with pooling(1) as desk, desk.pools.lease("compute", "pooled", 60) as worker:
        large = "x" * 5_000_000
        assert (await desk.run(worker, call(provider_input=large))).output == large


async def test_a_call_that_fits_no_frame_leaves_the_worker_untouched(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        async with desk.pools.lease("compute", "pooled", 60) as worker:
            with pytest.raises(FrameError):
                await desk.run(worker, call(provider_input="x" * MAX_CALL_FRAME))
        async with desk.pools.lease("compute", "pooled", 60) as worker:
            assert (await desk.run(worker, call())).io_calls == 1


@pytest.mark.parametrize("behaviour", [*HOSTILE, "half frame", "half frame, alive", "die", "exit"])
async def test_a_worker_that_breaks_its_word_costs_its_call_and_nothing_else(pooling: Pooling, behaviour: str) -> None:
    async with pooling(2, deadlines=SHORT_GRACE if behaviour == "half frame, alive" else PATIENT.pool) as desk:
        async with desk.pools.lease("compute", "pooled", 60) as good:
            with pytest.raises(WorkerLost) as caught:
                await desk.serve(behaviour)
            assert caught.value.reason in REASONS
            await until(lambda: len(desk.ended) == 1)
            asked = [(next(iter(desk.ended)), caught.value.reason)]
            # The end of one that left by itself may be known before anybody asks for it.
            assert desk.kills == asked or (desk.kills == [] and behaviour in ("die", "exit", "half frame"))
            assert (await desk.run(good, call())).outcome == "success"
        assert desk.pools.census()["compute"].members == 1


async def test_a_worker_whose_result_the_notary_has_and_the_front_does_not_get_is_lost(pooling: Pooling) -> None:
    async with pooling(1, deadlines=SHORT_GRACE) as desk:
        with pytest.raises(WorkerLost, match="no result in time"):
            await desk.serve("nothing-to-its-front")
        await until(lambda: desk.kills == [("compute-1", "no result in time")])


async def test_a_worker_that_does_not_read_is_lost_when_it_does_not_take_its_plan(pooling: Pooling) -> None:
    async with pooling(1, deadlines=replace(PATIENT.pool, give_seconds=0.2)) as desk:
        desk.processes["compute-1"].send_signal(signal.SIGSTOP)
        with pytest.raises(WorkerLost, match="does not take its plan"):
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                await worker.give(call(provider_input="x" * 5_000_000))
        assert desk.kills == [("compute-1", "does not take its plan")]


async def test_a_worker_killed_during_its_call_fails_that_call_at_once(pooling: Pooling) -> None:
    async with pooling(1) as desk, trio.open_nursery() as nursery:

        async def kill_when_busy() -> None:
            await until(lambda: desk.idle() == 0)
            os.kill(desk.processes["compute-1"].pid, signal.SIGKILL)

        nursery.start_soon(kill_when_busy)
        with trio.fail_after(60), pytest.raises(WorkerLost, match="channel closed"):
            await desk.serve("hang")


@pytest.mark.parametrize("first", ["another id", "another profile", "noise"])
async def test_a_worker_that_greets_wrongly_never_serves(pooling: Pooling, first: str) -> None:
    async with pooling() as desk:
        worker_id = desk.start(first=first)
        await until(lambda: [name for name, _ in desk.kills] == [worker_id])
        assert (desk.idle(), desk.greeted) == (0, [])


async def test_the_supervisor_hears_of_each_worker_that_has_greeted(pooling: Pooling) -> None:
    async with pooling(2) as desk:
        assert sorted(desk.greeted) == ["compute-1", "compute-2"]


async def test_a_worker_with_another_pid_than_announced_never_serves(pooling: Pooling) -> None:
    async with pooling() as desk:
        desk.start(pid=1)
        await until(lambda: desk.kills == [("compute-1", "not the worker that was announced")])


async def test_a_worker_that_dies_before_it_is_ready_is_given_up(pooling: Pooling) -> None:
    async with pooling() as desk:
        desk.start(first="silence")
        desk.processes["compute-1"].kill()
        await until(lambda: desk.pools.census()["compute"] == Census(0, 0, 0))


async def test_a_worker_that_is_gone_before_it_is_ready_leaves_no_open_channel_when_the_pools_stop(
    pooling: Pooling,
) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        async with pooling() as desk:
            desk.pools.attach(AttachWorker("compute-9", "compute", os.getpid(), 0), ours.detach())
            desk.pools.gone("compute-9")
        theirs.setblocking(False)
        assert theirs.recv(1) == b""
