"""One worker: what it says is believed only in its turn, whole, and about its own call."""

import os
import signal

import pytest
import trio

from frontend.pool.channel import WorkerLost
from frontend.pool.pool import Census
from ipc.framing import FrameError
from ipc.limits import MAX_CALL_FRAME
from tests.support.echo_worker import HOSTILE
from tests.support.worker_desk import Pooling, call, until

REASONS = ("protocol broken", "channel closed", "no result in time", "a result that cannot be this call's")


async def test_a_call_comes_back_with_its_result(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        for number in range(1, 4):
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                result = await worker.call(call(call_id=f"call-{number}", provider_input=f'{{"n":{number}}}'))
            assert (result.call_id, result.output, result.io_calls) == (f"call-{number}", f'{{"n":{number}}}', number)
        assert desk.kills == []


async def test_grant_keys_that_have_changed_reach_a_worker_before_its_next_call(pooling: Pooling) -> None:
    async with pooling(2) as desk:
        for turn in ("1", "1", "2", "2", "3"):
            desk.grant_jwks = f'{{"keys":[{turn}]}}'
            async with (
                desk.pools.lease("compute", "pooled", 60) as one,
                desk.pools.lease("compute", "pooled", 60) as two,
            ):
                for worker in (one, two):
                    assert (await worker.call(call("grant_keys"))).output == desk.grant_jwks
        assert desk.kills == []
        assert [process.poll() for process in desk.processes.values()] == [None, None]


async def test_grant_keys_are_those_of_the_moment_of_the_call_however_long_the_worker_was_kept(
    pooling: Pooling,
) -> None:
    async with pooling(1) as desk, desk.pools.lease("compute", "pooled", 60) as worker:
        desk.grant_jwks = '{"keys":["another"]}'
        with pytest.raises(FrameError):
            await worker.call(call(provider_input="x" * MAX_CALL_FRAME))
        assert (await worker.call(call("grant_keys"))).output == desk.grant_jwks


async def test_calls_and_results_of_megabytes_pass(pooling: Pooling) -> None:
    async with pooling(1) as desk, desk.pools.lease("compute", "pooled", 60) as worker:
        large = "x" * 5_000_000
        assert (await worker.call(call(provider_input=large))).output == large


async def test_a_call_that_fits_no_frame_leaves_the_worker_untouched(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        async with desk.pools.lease("compute", "pooled", 60) as worker:
            with pytest.raises(FrameError):
                await worker.call(call(provider_input="x" * MAX_CALL_FRAME))
        async with desk.pools.lease("compute", "pooled", 60) as worker:
            assert (await worker.call(call())).io_calls == 1


@pytest.mark.parametrize("behaviour", [*HOSTILE, "half frame", "half frame, alive", "die", "exit"])
async def test_a_worker_that_breaks_its_word_costs_its_call_and_nothing_else(pooling: Pooling, behaviour: str) -> None:
    async with pooling(2) as desk:
        async with desk.pools.lease("compute", "pooled", 60) as good:
            with pytest.raises(WorkerLost) as caught:
                await desk.serve(behaviour, deadline=-1.5 if behaviour == "half frame, alive" else 60)
            assert caught.value.reason in REASONS
            await until(lambda: len(desk.ended) == 1)
            asked = [(next(iter(desk.ended)), caught.value.reason)]
            # The end of one that left by itself may be known before anybody asks for it.
            assert desk.kills == asked or (desk.kills == [] and behaviour in ("die", "exit", "half frame"))
            assert (await good.call(call())).outcome == "success"
        assert desk.pools.census()["compute"].members == 1


async def test_a_worker_past_its_deadline_is_lost(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        with pytest.raises(WorkerLost, match="no result in time"):
            await desk.serve("hang", deadline=-1.9)
        await until(lambda: desk.kills == [("compute-1", "no result in time")])


async def test_a_worker_that_does_not_read_is_lost_at_the_deadline_too(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        desk.processes["compute-1"].send_signal(signal.SIGSTOP)
        with pytest.raises(WorkerLost, match="no result in time"):
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                await worker.call(call(provider_input="x" * 5_000_000, deadline=-1.9))


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
        assert desk.idle() == 0


async def test_a_worker_with_another_pid_than_announced_never_serves(pooling: Pooling) -> None:
    async with pooling() as desk:
        desk.start(pid=1)
        await until(lambda: desk.kills == [("compute-1", "not the worker that was announced")])


async def test_a_worker_that_dies_before_it_is_ready_is_given_up(pooling: Pooling) -> None:
    async with pooling() as desk:
        desk.start(first="silence")
        desk.processes["compute-1"].kill()
        await until(lambda: desk.pools.census()["compute"] == Census(0, 0, 0))
