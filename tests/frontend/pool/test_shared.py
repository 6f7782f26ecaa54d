"""Calls of one action beside each other in one http worker: which worker, how many, and how single ones end."""

import contextlib
from contextlib import AsyncExitStack

import pytest
import trio
import trio.testing

from frontend.pool.channel import WorkerChannel
from frontend.pool.pool import Census, NoWorker
from ipc.limits import MAX_AHEAD
from ipc.messages.calling import Call
from ipc.plan import SecretUse
from tests.support.worker_desk import DEADLINE, Desk, Pooling, call, until


async def leased(
    stack: AsyncExitStack, desk: Desk, kind: str = "post", isolation: str = "shared", *, is_patient: bool = True
) -> WorkerChannel:
    lease = desk.pools.lease("http", isolation, 0.01, is_patient=is_patient, kind=kind)
    return await stack.enter_async_context(lease)


async def test_calls_of_one_action_fill_a_worker_before_the_next_one(pooling: Pooling) -> None:
    async with pooling(2, profile="http", max=200) as desk, AsyncExitStack() as stack:
        held = [await leased(stack, desk) for _ in range(MAX_AHEAD + 1)]
        assert len(set(held[:MAX_AHEAD])) == 1
        assert held[-1] is not held[0]
        assert desk.needs == []


@pytest.mark.parametrize(
    ("kind", "isolation", "is_patient"),
    [("get", "shared", True), ("post", "pooled", True), ("post", "process", True), ("post", "shared", False)],
)
async def test_no_other_call_is_given_to_a_worker_that_runs_shared_ones(
    pooling: Pooling, kind: str, isolation: str, is_patient: bool
) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        desk.answers_needs = False
        await leased(stack, desk)
        with pytest.raises(NoWorker):
            await leased(stack, desk, kind, isolation, is_patient=is_patient)
        assert desk.needs == ["http"]


@pytest.mark.parametrize("isolation", ["pooled", "process", "shared"])
async def test_no_shared_call_is_given_to_a_worker_whose_call_is_alone(pooling: Pooling, isolation: str) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        desk.answers_needs = False
        await leased(stack, desk, isolation=isolation, is_patient=False)
        with pytest.raises(NoWorker):
            await leased(stack, desk)


async def test_a_call_goes_to_the_worker_with_the_most_calls_so_that_others_come_free(pooling: Pooling) -> None:
    async with pooling(2, profile="http", max=200) as desk, AsyncExitStack() as stack:
        async with AsyncExitStack() as first:
            for _ in range(MAX_AHEAD):
                await leased(first, desk)
            second = await leased(stack, desk)
            await leased(stack, desk)
        assert await leased(stack, desk) is second
        assert desk.pools.census()["http"] == Census(idle=1, members=2, waiting=0)


async def test_a_worker_that_is_idle_again_runs_calls_of_another_action(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk:
        for kind in ("post", "get"):
            async with AsyncExitStack() as stack:
                held = [await leased(stack, desk, kind) for _ in range(2)]
                assert {worker.worker_id for worker in held} == {"http-1"}


async def test_calls_and_not_workers_are_what_the_largest_size_of_the_pool_counts(pooling: Pooling) -> None:
    async with pooling(2, profile="http", max=3) as desk, AsyncExitStack() as stack:
        for kind in ("post", "post", "get"):
            await leased(stack, desk, kind)
        with pytest.raises(NoWorker):
            await leased(stack, desk, "put")
        assert set(desk.processes) == {"http-1", "http-2"}


async def test_calls_wait_where_there_may_be_fewer_workers_than_calls(pooling: Pooling) -> None:
    async with pooling(2, profile="http", max=200, most_workers=3) as desk, AsyncExitStack() as stack:
        assert len({await leased(stack, desk, "post") for _ in range(2 * MAX_AHEAD)}) == 2
        with pytest.raises(NoWorker):
            await leased(stack, desk, "post")
        assert desk.needs == [], "two thirds of the workers are its part"
        for isolation in ("pooled", "shared"):
            async with desk.pools.lease("http", isolation, 60, is_patient=True, kind="get") as worker:
                assert worker.worker_id == "http-3", "the last one is for other actions"
        for kind in ("get", "put"):
            with contextlib.suppress(NoWorker):
                await leased(stack, desk, kind, "pooled")
        assert desk.pools.census()["http"].members == 3
        assert desk.needs == ["http"]


async def test_a_shared_call_whose_lease_ends_early_takes_no_other_call_along(pooling: Pooling) -> None:
    async with pooling(2, profile="http", max=9) as desk:
        async with AsyncExitStack() as stack:
            worker = await leased(stack, desk)
            await worker.give(one := call())
            async with AsyncExitStack() as early:
                await (await leased(early, desk)).give(call("wait"))
            assert desk.kills == []
            assert await leased(stack, desk) is not worker, "one of its threads is still taken"
            assert (await desk.finish(worker, one)).outcome == "success"
        assert desk.kills == [(worker.worker_id, "its call was abandoned")]


async def given(desk: Desk, stack: AsyncExitStack, *calls: Call) -> WorkerChannel:
    """The worker that all of these calls were given."""
    (worker,) = {await leased(stack, desk) for _ in calls}
    for one in calls:
        await worker.give(one)
    return worker


async def test_a_call_that_is_cut_ends_its_worker_once_that_has_no_call_of_others(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        first, second = call("hang"), call("hang")
        worker = await given(desk, stack, first, second)
        desk.pools.cut(worker, first.call_id, "cut")
        assert desk.kills == []
        desk.pools.cut(worker, second.call_id, "cut")
        assert desk.kills == [("http-1", "cut")]


async def test_one_that_is_cut_and_ends_all_the_same_does_not_count_against_its_worker(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        ended, goes_on = call(), call("hang")
        worker = await given(desk, stack, ended, goes_on)
        desk.pools.cut(worker, ended.call_id, "cut")
        await desk.finish(worker, ended)
        assert desk.kills == []
        assert not worker.gives_up("another"), "the call that goes on is wanted"


async def test_a_worker_is_told_of_a_call_that_is_given_up_and_does_not_wait_for_its_secrets(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        given_up = call(isolation="shared", secrets=(SecretUse("token"),))
        worker = await given(desk, stack, call("hang"), given_up)
        desk.pools.cut(worker, given_up.call_id, "the notary is silent")
        desk.notary.word(worker.worker_id, given_up)
        result = await desk.notary.heard(worker.worker_id)
        assert result is not None
        assert (result.call_id, result.outcome) == (given_up.call_id, "plan_refused")


async def test_a_large_result_of_a_call_that_was_given_up_holds_up_no_other_call(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        large, other = call(isolation="shared", provider_input=f'"{"x" * 300_000}"'), call(isolation="shared")
        worker = await given(desk, stack, large, other)
        desk.notary.word(worker.worker_id, large)
        assert await desk.notary.heard(worker.worker_id) is not None
        desk.pools.cut(worker, large.call_id, "the notary is silent")
        assert (await desk.finish(worker, other)).outcome == "success"
        assert desk.kills == []


async def test_calls_that_were_given_up_outlast_a_worker_that_is_closed(pooling: Pooling) -> None:
    async with pooling(1, profile="http", max=9) as desk, AsyncExitStack() as stack:
        given_up = call("hang", isolation="shared"), call("hang", isolation="shared")
        worker = await given(desk, stack, *given_up)
        with trio.fail_after(DEADLINE):
            async with trio.open_nursery() as nursery:
                for one in given_up:  # one reads, the other waits for its turn
                    nursery.start_soon(worker.outlast, one.call_id)
                await trio.testing.wait_all_tasks_blocked()
                worker.close()


# ------------------------------------------------------------------ growth


async def waiting(desk: Desk, nursery: trio.Nursery, count: int, **lease: object) -> None:
    async def one() -> None:
        async with desk.pools.lease("http", wait_seconds=60, is_patient=True, **lease):  # type: ignore[arg-type]
            await trio.sleep_forever()

    before = desk.pools.census()["http"].waiting
    for _ in range(count):
        nursery.start_soon(one)
    await until(lambda: desk.pools.census()["http"].waiting == before + count)


async def test_one_worker_is_asked_for_as_many_shared_calls_as_it_can_run(pooling: Pooling) -> None:
    async with pooling(profile="http", max=200) as desk, trio.open_nursery() as nursery:
        desk.answers_needs = False
        for principal in ("ann", "bob"):
            await waiting(desk, nursery, MAX_AHEAD // 2, isolation="shared", kind="post", owners=(principal,))
        assert desk.needs == ["http"]
        await waiting(desk, nursery, 1, isolation="shared", kind="post")
        assert desk.needs == ["http"] * 2
        await waiting(desk, nursery, 1, isolation="shared", kind="get")
        assert desk.needs == ["http"] * 3
        nursery.cancel_scope.cancel()


async def test_workers_are_asked_for_a_few_at_a_time(pooling: Pooling) -> None:
    async with pooling(profile="http", max=200) as desk, trio.open_nursery() as nursery:
        desk.answers_needs = False
        await waiting(desk, nursery, 10, isolation="pooled")
        assert desk.needs == ["http"] * 4
        desk.start("http")
        await until(lambda: desk.pools.census()["http"].waiting == 9)
        assert desk.needs == ["http"] * 5
        nursery.cancel_scope.cancel()
