"""Pools: order, growth, shrinking, isolation, generations, and what cancellation leaves behind."""

import signal

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from frontend.pool.pool import Census, NoWorker, WorkerLost
from ipc.process.exits import Exit
from tests.support.patience import PATIENT
from tests.support.worker_desk import Pooling, call, until


async def test_the_worker_that_was_idle_is_taken_without_a_task_switch(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        with trio.testing.assert_no_checkpoints():
            async with desk.pools.lease("compute", "pooled", 60):
                assert desk.idle() == 0
            assert desk.idle() == 1


async def test_those_who_wait_are_served_in_order(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk:
        order: list[int] = []

        async def wait(number: int) -> None:
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                await desk.run(worker, call())
                order.append(number)

        async with trio.open_nursery() as nursery, desk.pools.lease("compute", "pooled", 60):
            for number in range(5):
                nursery.start_soon(wait, number)
                await until(lambda: desk.pools.census()["compute"].waiting == number + 1)  # noqa: B023
        assert order == [0, 1, 2, 3, 4]
        assert desk.needs == []


async def test_who_waits_too_long_gets_no_worker_and_leaves_the_queue(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk:
        async with desk.pools.lease("compute", "pooled", 60):
            with pytest.raises(NoWorker):
                await desk.serve(seconds=0.05)
        assert desk.pools.census()["compute"] == Census(idle=1, members=1, waiting=0)


async def test_the_queue_is_bounded(pooling: Pooling) -> None:
    pools = pooling(1, max=1, max_waiters=3)
    async with pools as desk, trio.open_nursery() as nursery, desk.pools.lease("compute", "pooled", 60):
        for _ in range(3):
            nursery.start_soon(desk.serve)
        await until(lambda: desk.pools.census()["compute"].waiting == 3)
        with pytest.raises(NoWorker, match="too many"):
            await desk.serve()


async def test_unknown_profiles_have_no_workers(pooling: Pooling) -> None:
    async with pooling() as desk:
        with pytest.raises(NoWorker):
            desk.pools.lease("smtp", "pooled", 60)


async def test_profiles_do_not_share_workers(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        desk.answers_needs = False
        with pytest.raises(NoWorker):
            async with desk.pools.lease("http", "pooled", 0.05):
                pass
        assert desk.needs == ["http"]


async def test_a_pool_grows_by_one_worker_for_each_that_waits_up_to_its_maximum(pooling: Pooling) -> None:
    async with pooling(1, max=3) as desk, trio.open_nursery() as nursery:
        holders: set[str] = set()
        release = trio.Event()

        async def hold() -> None:
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                holders.add(worker.worker_id)
                await release.wait()

        for _ in range(6):
            nursery.start_soon(hold)
        await until(lambda: len(holders) == 3)
        assert desk.needs == ["compute"] * 2
        release.set()


async def test_a_worker_is_asked_for_once_while_it_is_on_its_way(pooling: Pooling) -> None:
    async with pooling(0, max=4) as desk:
        desk.answers_needs = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.serve)
            await until(lambda: desk.needs == ["compute"])
            desk.start()
            for _ in range(3):
                await trio.testing.wait_all_tasks_blocked()
        assert desk.needs == ["compute"]


async def test_what_was_asked_for_and_did_not_come_is_asked_for_again(pooling: Pooling) -> None:
    async with pooling(0, idle_seconds=0.05, deadlines=replace(PATIENT.pool, ask_seconds=0.1)) as desk:
        desk.answers_needs = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.serve)
            await until(lambda: len(desk.needs) >= 2)
            desk.answers_needs = True


async def test_a_dead_worker_s_place_is_filled_for_those_who_wait(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, trio.open_nursery() as nursery:
        served: list[str] = []

        async def wait() -> None:
            served.append(await desk.serve())

        async with desk.pools.lease("compute", "pooled", 60) as worker:
            nursery.start_soon(wait)
            await until(lambda: desk.pools.census()["compute"].waiting == 1)
            with pytest.raises(WorkerLost):
                await desk.run(worker, call("die"))
        await until(lambda: served == ["compute-2"])
        assert desk.needs == ["compute"]


async def test_an_idle_worker_that_died_is_never_handed_out(pooling: Pooling) -> None:
    async with pooling(2) as desk:
        desk.reports_ends = False
        for worker_id in ("compute-1", "compute-2"):
            desk.end(worker_id)
            await trio.to_thread.run_sync(desk.processes[worker_id].wait)
        assert await desk.serve() == "compute-3"
        assert {name for name, _ in desk.kills} == {"compute-1", "compute-2"}


async def test_the_end_of_an_idle_worker_is_heard_from_the_supervisor(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        desk.end("compute-1")
        await until(lambda: desk.pools.census()["compute"] == Census(0, 0, 0))


@pytest.mark.parametrize("behaviour", ["speak while idle", "leave while idle"])
async def test_a_worker_that_speaks_or_leaves_while_idle_is_found_out(pooling: Pooling, behaviour: str) -> None:
    async with pooling(1, idle_seconds=0.05, min_spare=1) as desk:
        try:
            await desk.serve(behaviour)
        except WorkerLost:
            # Both results came in one piece: found out even earlier.
            assert behaviour == "speak while idle"
        await until(lambda: set(desk.ended) == {"compute-1"})
        assert await desk.serve() == "compute-2"


async def test_a_result_that_says_so_is_the_worker_s_last(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        assert await desk.serve("retiring") == "compute-1"
        assert desk.idle() == 0
        await until(lambda: desk.ended == {"compute-1": Exit.RECYCLED})
        assert await desk.serve() == "compute-2"
        assert desk.kills == []


async def test_an_isolated_call_has_a_worker_of_its_own_before_and_after(pooling: Pooling) -> None:
    async with pooling(1, max=2) as desk:
        assert await desk.serve() == "compute-1"
        assert await desk.serve(isolation="process") == "compute-2"
        await until(lambda: desk.ended == {"compute-2": Exit.RECYCLED})
        assert await desk.serve(isolation="process") == "compute-3"
        assert await desk.serve() == "compute-1"
        assert desk.kills == []


async def test_a_full_pool_of_used_workers_makes_room_for_an_isolated_call(pooling: Pooling) -> None:
    async with pooling(2, max=2) as desk:
        async with (
            desk.pools.lease("compute", "pooled", 60) as first,
            desk.pools.lease("compute", "pooled", 60) as second,
        ):
            await desk.run(first, call())
            await desk.run(second, call())
        assert await desk.serve(isolation="process") == "compute-3"
        assert desk.pools.census()["compute"].idle == 1


async def test_an_isolated_call_is_not_starved_by_pooled_ones(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, trio.open_nursery() as nursery:
        done: list[str] = []

        async def pooled() -> None:
            while "isolated" not in done:
                await desk.serve()

        async def isolated() -> None:
            await desk.serve(isolation="process")
            done.append("isolated")

        for task in (pooled, pooled, isolated, pooled):
            nursery.start_soon(task)
        with trio.fail_after(60):
            await until(lambda: done == ["isolated"])


async def test_a_lease_without_a_call_gives_the_worker_back_even_to_isolated_calls(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        async with desk.pools.lease("compute", "process", 60):
            pass
        assert await desk.serve(isolation="process") == "compute-1"


async def test_a_call_cancelled_after_it_was_sent_costs_the_worker(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.serve, "hang")
            await until(lambda: desk.idle() == 0)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await until(lambda: desk.kills == [("compute-1", "its call was abandoned")])
        assert await desk.serve() == "compute-2"


async def test_a_lease_cancelled_before_its_call_costs_nothing(pooling: Pooling) -> None:
    async with pooling(1) as desk:
        with trio.CancelScope() as scope:
            async with desk.pools.lease("compute", "pooled", 60):
                scope.cancel()
                await trio.sleep_forever()
        assert await desk.serve() == "compute-1"
        assert desk.kills == []


async def test_a_waiter_cancelled_in_the_moment_it_is_served_passes_the_worker_on(pooling: Pooling) -> None:
    async with pooling(1, max=1) as desk, trio.open_nursery() as nursery:
        served: list[str] = []
        first = trio.CancelScope()

        async def wait(scope: trio.CancelScope) -> None:
            with scope:
                served.append(await desk.serve())

        async with desk.pools.lease("compute", "pooled", 60):
            nursery.start_soon(wait, first)
            await until(lambda: desk.pools.census()["compute"].waiting == 1)
            nursery.start_soon(wait, trio.CancelScope())
            await until(lambda: desk.pools.census()["compute"].waiting == 2)
            first.cancel()
        await until(lambda: len(served) == 1)
        await until(lambda: desk.pools.census()["compute"] == Census(1, 1, 0))


async def test_idle_workers_above_the_spare_ones_retire(pooling: Pooling) -> None:
    async with pooling(idle_seconds=0.1, min_spare=1, max=3) as desk:
        for _ in range(3):
            desk.start()
        await until(lambda: len(desk.ended) == 2)
        await until(lambda: desk.pools.census()["compute"] == Census(1, 1, 0))
        assert list(desk.ended.values()) == [Exit.RECYCLED] * 2
        assert desk.kills == []


async def test_a_worker_that_does_not_leave_when_retired_is_killed(pooling: Pooling) -> None:
    deadlines = replace(PATIENT.pool, leave_seconds=0.1)
    async with pooling(idle_seconds=0.05, min_spare=0, deadlines=deadlines) as desk:
        desk.start(first="deaf")
        await until(lambda: desk.kills == [("compute-1", "did not leave when retired")])


async def test_workers_of_an_older_generation_retire_as_they_come_free(pooling: Pooling) -> None:
    async with pooling(2, max=4) as desk:
        async with desk.pools.lease("compute", "pooled", 60) as busy:
            desk.pools.require_generation(3)
            assert desk.idle() == 0
            assert (await desk.run(busy, call())).outcome == "success"
        assert desk.idle() == 0
        desk.start(generation=2)
        newest = desk.start(generation=3)
        assert await desk.serve() == newest
        retired = ("compute-1", "compute-2", "compute-3")
        await until(lambda: desk.ended == dict.fromkeys(retired, Exit.RECYCLED))
        assert desk.kills == []


async def test_a_worker_that_nobody_can_use_is_closed(pooling: Pooling) -> None:
    async with pooling() as desk:
        worker_id = desk.start("smtp")
        await until(lambda: set(desk.ended) == {worker_id})


async def test_the_end_of_the_pools_ends_the_calls_and_the_workers(pooling: Pooling) -> None:
    lost: list[str] = []
    async with trio.open_nursery() as nursery:
        async with pooling(2, deadlines=replace(PATIENT.pool, grace_seconds=60.0)) as desk:

            async def busy() -> None:
                try:
                    async with desk.pools.lease("compute", "pooled", 60) as worker:
                        await worker.give(hanging := call("hang"))
                        await worker.result(hanging.call_id)
                except WorkerLost as error:
                    lost.append(error.reason)

            nursery.start_soon(busy)
            await until(lambda: desk.idle() == 1)
        await until(lambda: lost == ["channel closed"])
        await until(lambda: all(process.poll() is not None for process in desk.processes.values()))
        # The idle one leaves by itself; so does the other, unless the end of its lease has it killed before.
        codes = {process.poll() for process in desk.processes.values()}
        assert {Exit.ORPHANED} <= codes <= {Exit.ORPHANED, -signal.SIGKILL}


async def test_many_calls_over_few_workers_lose_nothing(pooling: Pooling) -> None:
    async with pooling(2, max=2) as desk:
        results: list[str | None] = []

        async def one(number: int) -> None:
            async with desk.pools.lease("compute", "pooled", 60) as worker:
                text = str(number)
                results.append((await desk.run(worker, call(call_id=text, provider_input=text))).output)

        async with trio.open_nursery() as nursery:
            for number in range(300):
                nursery.start_soon(one, number)
        assert sorted(map(str, results), key=int) == [str(number) for number in range(300)]
        assert desk.pools.census()["compute"] == Census(2, 2, 0)


# ------------------------------------------------------------------ callers with many calls


async def test_a_caller_with_one_call_does_not_wait_behind_all_of_another_s(pooling: Pooling) -> None:
    async with pooling(2, max=2) as desk:
        order: list[str] = []
        begin = trio.Event()

        async def wait(principal: str, session: str) -> None:
            owners = (f"principal {principal}", f"session {session}")
            async with desk.pools.lease("compute", "pooled", 60, owners):
                order.append(session)
                await begin.wait()

        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(wait, "hog", f"hog-{number % 3}")
                await until(lambda: len(order) + desk.pools.census()["compute"].waiting == number + 1)  # noqa: B023
            nursery.start_soon(wait, "hog", "small")
            await until(lambda: desk.pools.census()["compute"].waiting == 11)
            nursery.start_soon(wait, "victim", "victim")
            await until(lambda: desk.pools.census()["compute"].waiting == 12)
            begin.set()
        assert sorted(order[:2]) == ["hog-0", "hog-1"]
        assert "victim" in order[2:4], "whose principal has not been served yet"
        assert "small" in order[2:7], "among the sessions of one principal each has its turn"
        assert len(order) == 14


async def test_what_callers_hold_is_forgotten_with_their_calls(pooling: Pooling) -> None:
    async with pooling(2, max=2) as desk:
        pool = desk.pools._pools["compute"]

        async def one(number: int) -> None:
            owners = (f"principal {number % 7}", f"session {number}")
            with trio.move_on_after(0.001 if number % 3 == 0 else 60):
                async with desk.pools.lease("compute", "pooled", 60, owners) as worker:
                    await desk.run(worker, call())

        async with trio.open_nursery() as nursery:
            for number in range(60):
                nursery.start_soon(one, number)
        assert len(pool._order) == 0
