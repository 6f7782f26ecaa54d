"""Shares of a pool: no action and no principal keeps others waiting, however long its own calls take."""

from contextlib import AsyncExitStack

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from frontend.pool.places import HeldPlaces
from frontend.pool.pool import NoWorker
from tests.support.worker_desk import Desk, Pooling, until


def filled(places: HeldPlaces, action: str, principal: str) -> int:
    """How many places these take one after the other until they may take no more."""
    count = 0
    while places.may_take(action, principal):
        places.take(action, principal)
        count += 1
    return count


@pytest.mark.parametrize(("ceiling", "taken"), [(1, 1), (2, 2), (3, 2), (4, 3), (12, 8), (256, 171), (341, 228)])
def test_one_action_gets_two_thirds_of_the_places(ceiling: int, taken: int) -> None:
    assert filled(HeldPlaces(ceiling), "post", "ann") == taken


def test_other_actions_of_a_principal_get_places_beside_one_that_hangs() -> None:
    places = HeldPlaces(96)
    assert [filled(places, action, "ann") for action in ("hangs", "get")] == [64, 8]
    assert [filled(places, f"new {number}", "ann") for number in range(9)] == [1] * 8 + [0]


def test_other_principals_get_places_beside_one_whose_calls_hang_of_the_same_action_too() -> None:
    places = HeldPlaces(96)
    for action in ("post", "get", *(f"new {number}" for number in range(30))):
        filled(places, action, "ann")
    assert filled(places, "post", "bob") == 1
    assert filled(places, "get", "bob") > 1
    assert filled(places, "get", "cid") == 1


def test_other_actions_get_places_beside_one_that_hangs_for_many_principals() -> None:
    places = HeldPlaces(96)
    for number in range(90):
        filled(places, "hangs", f"principal {number}")
    assert filled(places, "other", "principal 80") > 1
    assert filled(places, "other", "a new one") > 0


def test_what_is_given_back_can_be_taken_again() -> None:
    places = HeldPlaces(12)
    for _ in range(3):
        count = filled(places, "post", "ann")
        assert count == 8
        for _ in range(count):
            places.give_back("post", "ann")


def test_calls_of_no_action_and_principal_share_all_places() -> None:
    assert filled(HeldPlaces(12), "", "") == 12


@given(
    st.integers(1, 40), st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.booleans()), max_size=80)
)
def test_a_newcomer_always_gets_one_of_the_places_that_are_free(
    ceiling: int, steps: list[tuple[str, str, bool]]
) -> None:
    places, held = HeldPlaces(ceiling), list[tuple[str, str]]()
    for action, principal, ends in steps:
        if ends and (action, principal) in held:
            held.remove((action, principal))
            places.give_back(action, principal)
        elif not ends and places.may_take(action, principal):
            held.append((action, principal))
            places.take(action, principal)
        assert len(held) <= ceiling
        assert places.may_take("newcomer", "newcomer") == (len(held) < ceiling)


# ------------------------------------------------------------------ in a pool


async def held_by(desk: Desk, stack: AsyncExitStack, profile: str, kind: str, owners: tuple[str, ...] = ()) -> int:
    """How many workers these calls get at once, one after the other."""
    count = 0
    while True:
        try:
            lease = desk.pools.lease(profile, "pooled", 0.01, owners, kind=kind)
            await stack.enter_async_context(lease)
        except NoWorker:
            return count
        count += 1


@pytest.mark.parametrize("profile", ["compute", "http", "fs"])
async def test_an_action_whose_calls_hang_leaves_workers_for_others_in_each_pool(
    pooling: Pooling, profile: str
) -> None:
    async with pooling(6, profile=profile, max=6) as desk, AsyncExitStack() as stack:
        assert await held_by(desk, stack, profile, "hangs") == 4
        assert await held_by(desk, stack, profile, "other") == 2


async def test_a_principal_whose_calls_hang_leaves_workers_for_others(pooling: Pooling) -> None:
    async with pooling(6, max=6) as desk, AsyncExitStack() as stack:
        taken = [await held_by(desk, stack, "compute", f"kind {number}", ("ann",)) for number in range(8)]
        assert sum(taken) == 6 - 1 or sum(taken) == 6, taken
        assert await held_by(desk, stack, "compute", "another", ("bob",)) == 6 - sum(taken)


async def test_a_call_beyond_its_share_waits_for_one_of_its_own_and_starts_no_worker(pooling: Pooling) -> None:
    async with pooling(4, max=6) as desk, trio.open_nursery() as nursery:
        ends, served = [trio.Event() for _ in range(5)], list[int]()

        async def one(number: int) -> None:
            async with desk.pools.lease("compute", "pooled", 60, kind="hangs"):
                served.append(number)
                await ends[number].wait()

        for number in range(5):
            nursery.start_soon(one, number)
            await until(lambda: desk.pools.census()["compute"].waiting == max(0, number - 3) and number >= 0)  # noqa: B023
            await until(lambda: len(served) == min(number + 1, 4))  # noqa: B023
        assert desk.needs == []
        async with desk.pools.lease("compute", "pooled", 60, kind="other") as worker:
            assert worker.worker_id == "compute-5", "others are served by a worker that comes for them"
        assert served == [0, 1, 2, 3]
        ends[2].set()
        await until(lambda: served == [0, 1, 2, 3, 4])
        for end in ends:
            end.set()
