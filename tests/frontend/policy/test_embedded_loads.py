"""Policies in the embedded engine, against processes that the test plays: swapped whole, or not at all."""

import pytest
import trio
import trio.testing

from frontend.policy.embedded import LOAD_SECONDS
from frontend.policy.engine import PolicyRefused
from ipc.messages import LoadPolicy, PolicyCompiled, UsePolicy, Verdict
from tests.support.played_policy import ALLOWED, PlayedHouse, asking, serving
from tests.support.policy import ALLOW_ALL, sources

SECOND = sources("decision := 2", version="second")


async def test_a_refused_candidate_leaves_the_policy_in_force(house: PlayedHouse, nursery: trio.Nursery) -> None:
    peer = await serving(house)

    async def refuse() -> None:
        load = await peer.received()
        assert isinstance(load, LoadPolicy)
        await peer.send(PolicyCompiled(load.load_id, "gateway.rego:3: bad\ngateway.rego:4: worse"))

    nursery.start_soon(refuse)
    with pytest.raises(PolicyRefused) as refusal:
        await house.engine.load(SECOND)
    assert refusal.value.problems == ("gateway.rego:3: bad", "gateway.rego:4: worse")
    assert house.engine.policy_version == ALLOW_ALL.policy_version
    outcome = asking(nursery, house)
    await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
    assert await outcome.rule() == "played"


async def test_questions_wait_for_a_compilation_and_are_asked_after_it(
    house: PlayedHouse, nursery: trio.Nursery
) -> None:
    peer = await serving(house)
    nursery.start_soon(house.engine.load, SECOND)
    load = await peer.received()
    assert isinstance(load, LoadPolicy)
    outcome = asking(nursery, house)
    await trio.testing.wait_all_tasks_blocked()
    await peer.send(PolicyCompiled(load.load_id, None))
    assert await peer.received() == UsePolicy(load.load_id)
    await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
    assert await outcome.rule() == "played"
    assert house.engine.policy_version == "second"


async def test_a_candidate_that_kills_the_process_is_refused_and_the_successor_gets_the_old_policy(
    house: PlayedHouse, nursery: trio.Nursery
) -> None:
    peer = await serving(house)

    async def die() -> None:
        await peer.received()
        peer.close()

    nursery.start_soon(die)
    with pytest.raises(PolicyRefused, match="was lost while it tried this policy: it closed its channel"):
        await house.engine.load(SECOND)
    successor = house.attach_peer()
    assert (await successor.accept_policy()).modules == ALLOW_ALL.modules
    assert house.engine.policy_version == ALLOW_ALL.policy_version


async def test_a_candidate_that_compiled_is_in_force_even_if_the_process_dies_then(
    house: PlayedHouse, nursery: trio.Nursery
) -> None:
    peer = await serving(house)

    async def compile_and_die() -> None:
        load = await peer.received()
        assert isinstance(load, LoadPolicy)
        await peer.send(PolicyCompiled(load.load_id, None))
        peer.close()

    nursery.start_soon(compile_and_die)
    await house.engine.load(SECOND)
    assert house.engine.policy_version == "second"
    await house.reason()
    assert (await house.attach_peer().accept_policy()).modules == SECOND.modules


async def test_a_candidate_that_never_compiles_costs_the_process(
    house: PlayedHouse, autojump_clock: trio.testing.MockClock
) -> None:
    await serving(house)
    began = trio.current_time()
    with pytest.raises(PolicyRefused, match="did not compile within"):
        await house.engine.load(SECOND)
    assert trio.current_time() - began == pytest.approx(LOAD_SECONDS)
    assert "did not compile a policy" in await house.reason()
    assert house.engine.policy_version == ALLOW_ALL.policy_version


async def test_a_policy_can_not_be_loaded_without_a_process(
    house: PlayedHouse, autojump_clock: trio.testing.MockClock
) -> None:
    with pytest.raises(PolicyRefused, match="no policy process was ready"):
        await house.engine.load(ALLOW_ALL)


async def test_a_load_waits_for_the_process_to_come(house: PlayedHouse, nursery: trio.Nursery) -> None:
    nursery.start_soon(house.engine.load, ALLOW_ALL)
    await trio.testing.wait_all_tasks_blocked()
    await house.attach_peer().accept_policy()
    with trio.fail_after(5):
        while not house.engine.is_available:
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_successor_that_does_not_take_the_policy_in_force_is_given_up(
    house: PlayedHouse, autojump_clock: trio.testing.MockClock, is_silent: bool
) -> None:
    (await serving(house)).close()
    await house.reason()
    successor = house.attach_peer()
    load = await successor.received()
    assert isinstance(load, LoadPolicy)
    if not is_silent:
        await successor.send(PolicyCompiled(load.load_id, "not any more"))
    await trio.sleep(LOAD_SECONDS + 1)
    assert "the policy in force" in house.asked_for[-1][1]
    assert len(house.asked_for) == 2
    assert not house.engine.is_available


async def test_two_loads_come_one_after_the_other(house: PlayedHouse, nursery: trio.Nursery) -> None:
    peer = await serving(house)
    nursery.start_soon(house.engine.load, SECOND)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(house.engine.load, sources("decision := 3", version="third"))
    assert (await peer.accept_policy()).modules == SECOND.modules
    await peer.accept_policy()
    await trio.testing.wait_all_tasks_blocked()
    assert house.engine.policy_version == "third"
