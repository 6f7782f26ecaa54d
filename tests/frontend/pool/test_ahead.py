"""Calls that are given ahead to busy workers: the choice of workers, the number of calls, and the end of such a
worker."""

from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio
import trio.testing

from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.pool import NoWorker
from ipc.limits import AHEAD_BYTES, MAX_AHEAD
from ipc.plan import seal
from ipc.process.exits import Exit
from tests.support.worker_desk import Desk, Pooling, call, until

ROOM = MAX_AHEAD


async def leased(
    stack: AsyncExitStack, desk: Desk, profile: str = "compute", isolation: str = "pooled", *, is_patient: bool = True
) -> WorkerChannel:
    lease = desk.pools.lease(profile, isolation, 0.01, is_patient=is_patient)
    return await stack.enter_async_context(lease)


async def test_a_patient_call_is_given_to_a_busy_worker_until_that_has_as_many_as_one_may(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, AsyncExitStack() as stack:
        held = [await leased(stack, desk) for _ in range(ROOM)]
        assert {worker.worker_id for worker in held} == {"compute-1"}
        with pytest.raises(NoWorker):
            await leased(stack, desk)


async def test_an_idle_worker_is_taken_before_a_busy_one_and_the_least_busy_of_those_next(pooling: Pooling) -> None:
    async with pooling(2, max=2) as desk, AsyncExitStack() as stack:
        for _ in range(2):
            assert {(await leased(stack, desk)).worker_id for _ in range(2)} == {"compute-1", "compute-2"}


async def brief(stack: AsyncExitStack, desk: Desk, kind: str = "brief", isolation: str = "pooled") -> WorkerChannel:
    desk.pools.brevity.note("brief", 300, 1000)
    desk.pools.brevity.note("long", 300, 10**9)
    lease = desk.pools.lease("compute", isolation, 0.01, is_patient=True, kind=kind)
    return await stack.enter_async_context(lease)


async def test_while_as_many_workers_are_busy_as_can_run_at_once_a_brief_call_waits_behind_theirs(
    pooling: Pooling,
) -> None:
    async with pooling(4, abreast=2) as desk, AsyncExitStack() as stack:
        held = [(await brief(stack, desk)).worker_id for _ in range(2 * ROOM)]
        assert len(set(held[:2])) == 2
        assert {held.count(one) for one in held} == {ROOM}
        assert (await brief(stack, desk)).worker_id not in held, "those have as many as one may"


@pytest.mark.parametrize("kinds", ["brief long", "long brief", "brief new", "new brief"])
async def test_a_call_takes_an_idle_worker_unless_it_and_those_before_it_are_brief(
    pooling: Pooling, kinds: str
) -> None:
    async with pooling(2, abreast=1) as desk, AsyncExitStack() as stack:
        held = {(await brief(stack, desk, kind)).worker_id for kind in kinds.split()}
        assert len(held) == 2


async def test_a_worker_that_has_been_given_one_long_call_is_no_place_for_brief_ones(pooling: Pooling) -> None:
    async with pooling(1, abreast=1, max=2) as desk, AsyncExitStack() as stack:
        first = await brief(stack, desk)
        assert await brief(stack, desk, "long") is first
        desk.start()
        await until(lambda: desk.idle() == 1)
        assert await brief(stack, desk) is not first


@pytest.mark.parametrize("profile", ["http", "fs"])
async def test_a_worker_that_waits_for_others_outside_has_one_call(pooling: Pooling, profile: str) -> None:
    async with pooling() as desk, AsyncExitStack() as stack:
        desk.answers_needs = False
        desk.start(profile)
        await until(lambda: desk.idle(profile) == 1)
        await leased(stack, desk, profile)
        with pytest.raises(NoWorker):
            await leased(stack, desk, profile)


IMPATIENT = {"is_patient": False}
ALONE = {"isolation": "process"}


@pytest.mark.parametrize(("first", "second"), [(IMPATIENT, {}), (ALONE, {}), ({}, IMPATIENT), ({}, ALONE)])
async def test_only_a_patient_call_is_given_ahead_and_only_behind_such_a_one(
    pooling: Pooling, first: dict[str, Any], second: dict[str, Any]
) -> None:
    async with pooling(1, max=1) as desk, AsyncExitStack() as stack:
        await leased(stack, desk, **first)
        with pytest.raises(NoWorker):
            await leased(stack, desk, **second)


async def test_nothing_is_given_to_a_worker_whose_call_takes_long_until_it_has_ended(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk:
        async with AsyncExitStack() as stack:
            (await leased(stack, desk)).is_slow = True
            with pytest.raises(NoWorker):
                await leased(stack, desk)
        async with AsyncExitStack() as stack:
            assert [(await leased(stack, desk)).worker_id for _ in range(2)] == ["compute-1"] * 2


async def test_a_call_that_waits_for_a_worker_of_its_own_is_not_passed_by_calls_ahead(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, trio.open_nursery() as nursery:
        served: list[str] = []
        stack = AsyncExitStack()

        async def alone() -> None:
            served.append(await desk.serve())

        async with stack:
            await leased(stack, desk)
            nursery.start_soon(alone)
            await until(lambda: desk.pools.census()["compute"].waiting == 1)
            with pytest.raises(NoWorker):
                await leased(stack, desk)
        await until(lambda: served == ["compute-1"])


async def test_a_call_that_waits_is_given_to_a_worker_that_has_room_again(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, trio.open_nursery() as nursery:
        served: list[int] = []
        ends = [trio.Event() for _ in range(ROOM + 1)]

        async def one(number: int) -> None:
            async with desk.pools.lease("compute", "pooled", 60, is_patient=True):
                served.append(number)
                await ends[number].wait()

        for number in range(ROOM):
            nursery.start_soon(one, number)
            await until(lambda: len(served) == number + 1)  # noqa: B023
        nursery.start_soon(one, ROOM)
        await until(lambda: desk.pools.census()["compute"].waiting == 1)
        assert len(served) == ROOM
        ends[0].set()
        await until(lambda: len(served) == ROOM + 1)
        for end in ends:
            end.set()


async def test_as_many_of_the_largest_plans_as_one_may_have_fit_into_its_channel(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, AsyncExitStack() as stack:
        empty = len(seal(call().plan).encoded)
        calls = [call(provider_input="x" * (AHEAD_BYTES - empty - 1)) for _ in range(ROOM)]
        assert all(AHEAD_BYTES - 10 < len(seal(one.plan).encoded) < AHEAD_BYTES for one in calls)
        worker = await leased(stack, desk)
        for _ in range(ROOM - 1):
            await leased(stack, desk)
        with trio.testing.assert_no_checkpoints():
            for one in calls:
                await worker.give(one)
        for one in calls:
            assert (await desk.finish(worker, one)).output == one.plan.provider_input


async def test_a_plan_that_is_dropped_costs_no_worker_and_one_that_is_left_behind_costs_it_once(
    pooling: Pooling,
) -> None:
    async with pooling(1, max=1) as desk:
        async with desk.pools.lease("compute", "pooled", 60, is_patient=True) as worker:
            await worker.give(runs := call())
            async with desk.pools.lease("compute", "pooled", 60, is_patient=True) as same:
                await same.give(dropped := call())
                same.drop(dropped.call_id)
            assert (await desk.finish(worker, runs)).outcome == "success"
        assert desk.kills == []
        async with desk.pools.lease("compute", "pooled", 60, is_patient=True) as worker:
            await worker.give(call("hang"))
            async with desk.pools.lease("compute", "pooled", 60, is_patient=True) as same:
                await same.give(dropped := call())
                same.drop(dropped.call_id)
            assert desk.kills == [], "the other call is still somebody's"
        assert desk.kills == [("compute-1", "its call was abandoned")]


async def test_a_worker_is_asked_to_be_killed_once(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk:
        async with desk.pools.lease("compute", "pooled", 60, is_patient=True) as worker:
            await worker.give(call("hang"))
            for _ in range(2):
                desk.pools.kill(worker, "no result in time")
        assert desk.kills == [("compute-1", "no result in time")]


async def test_a_worker_that_retires_while_others_are_on_it_serves_them_first(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk:
        async with AsyncExitStack() as stack:
            worker = await leased(stack, desk)
            await leased(stack, desk)
            desk.pools.require_generation(1)
            with pytest.raises(NoWorker):
                await leased(stack, desk)
            for _ in range(2):
                assert (await desk.run(worker, call())).outcome == "success"
        await until(lambda: desk.ended == {"compute-1": Exit.RECYCLED})
        assert desk.kills == []


# ------------------------------------------------------------------ results of several calls


async def three_given(desk: Desk, stack: AsyncExitStack) -> tuple[WorkerChannel, list[str]]:
    worker = await leased(stack, desk)
    calls = [call() for _ in range(3)]
    for _ in calls[1:]:
        await leased(stack, desk)
    for one in calls:
        await worker.give(one)
        desk.notary.word(worker.worker_id, one)
    return worker, [one.call_id for one in calls]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_results_reach_their_own_tasks_in_whatever_order_they_ask(
    pooling: Pooling, order: tuple[int, ...]
) -> None:
    async with pooling(1, max=1) as desk:
        async with AsyncExitStack() as stack:
            worker, ids = await three_given(desk, stack)
            assert worker.is_behind(ids[1])
            assert not worker.is_behind(ids[0])
            for _ in ids:
                await desk.notary.heard(worker.worker_id)
            for place in order:
                assert (await worker.result(ids[place])).call_id == ids[place]
        assert desk.idle() == 1


async def test_a_task_that_waits_is_woken_when_another_one_takes_its_result_in(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, AsyncExitStack() as stack, trio.open_nursery() as nursery:
        worker = await leased(stack, desk)
        await leased(stack, desk)
        first, second = call("wait"), call()
        for one in (first, second):
            await worker.give(one)
            desk.notary.word(worker.worker_id, one)
        heard: list[str] = []

        async def wait() -> None:
            heard.append((await worker.result(first.call_id)).call_id)

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        desk.go_on("compute-1")
        # Block the loop until both results are in the socket: this task takes them in before the other one can run.
        packets = desk.notary._channels["compute-1"]
        for _ in range(2):
            while True:
                try:
                    if packets.receive() is not None:
                        break
                except BlockingIOError:
                    continue
        assert (await worker.result(second.call_id)).call_id == second.call_id
        await until(lambda: heard == [first.call_id])  # long before its own patience ends


async def test_a_worker_that_ends_after_one_of_its_results_still_serves_that_one(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, AsyncExitStack() as stack:
        worker = await leased(stack, desk)
        await leased(stack, desk)
        told, lost = call(), call("die")
        for one in (told, lost):
            await worker.give(one)
            desk.notary.word(worker.worker_id, one)
        assert await desk.notary.heard(worker.worker_id) is not None
        assert await desk.notary.heard(worker.worker_id) is None
        assert (await worker.result(told.call_id)).outcome == "success"
        with pytest.raises(WorkerLost, match="channel closed"):
            await worker.result(lost.call_id)
