"""Policies in the embedded engine, against processes that the test plays: swapped whole, or not at all."""

import pytest
import trio
import trio.testing

from frontend.deadlines import PolicyDeadlines
from frontend.policy.engine import PolicyRefused
from ipc.messages.deciding import PolicyCompiled, UsePolicy, Verdict
from tests.support.played_policy import ALLOWED, PlayedEngine, PlayedPeer, asking, serves, serving
from tests.support.policy import ALLOW_ALL, sources
from tests.support.worker_desk import until

LOAD_SECONDS = PolicyDeadlines().load_seconds
SECOND = sources("decision := 2", version="second")


async def test_questions_wait_for_a_compilation_and_are_asked_after_it(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)
    nursery.start_soon(played.engine.load, SECOND)
    load = await peer.candidate()
    outcome = asking(nursery, played)
    await trio.testing.wait_all_tasks_blocked()
    await peer.send(PolicyCompiled(load.load_id, None))
    assert await peer.received() == UsePolicy(load.load_id)
    await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
    assert await outcome.rule() == "played"
    assert played.engine.policy_version == "second"


async def test_a_candidate_that_kills_every_process_is_refused_and_the_successor_gets_the_old_policy(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)

    async def die_twice() -> None:
        await peer.received()
        peer.close()
        second = played.attach_peer()
        await second.accept_policy()
        await second.received()
        second.close()

    nursery.start_soon(die_twice)
    with pytest.raises(PolicyRefused, match="was lost while it tried this policy: it closed its channel"):
        await played.engine.load(SECOND)
    successor = played.attach_peer()
    assert (await successor.accept_policy()).modules == ALLOW_ALL.modules
    assert played.engine.policy_version == ALLOW_ALL.policy_version


async def test_a_process_that_somebody_kills_while_it_compiles_costs_the_candidate_nothing(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)

    async def die_once() -> None:
        await peer.received()
        peer.close()
        second = played.attach_peer()
        await second.accept_policy()
        assert (await second.accept_policy()).modules == SECOND.modules

    nursery.start_soon(die_once)
    await played.engine.load(SECOND)
    assert played.engine.policy_version == "second"


async def test_a_candidate_that_compiled_is_in_force_even_if_the_process_dies_then(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)

    async def compile_and_die() -> None:
        load = await peer.candidate()
        await peer.send(PolicyCompiled(load.load_id, None))
        peer.close()

    nursery.start_soon(compile_and_die)
    await played.engine.load(SECOND)
    assert played.engine.policy_version == "second"
    await played.reason()
    assert (await played.attach_peer().accept_policy()).modules == SECOND.modules


async def test_a_candidate_that_never_compiles_costs_the_process(
    played: PlayedEngine, autojump_clock: trio.testing.MockClock
) -> None:
    await serving(played)
    began = trio.current_time()
    with pytest.raises(PolicyRefused, match="did not compile within"):
        await played.engine.load(SECOND)
    assert trio.current_time() - began == pytest.approx(LOAD_SECONDS)
    assert "did not compile a policy" in await played.reason()
    assert played.engine.policy_version == ALLOW_ALL.policy_version


async def test_a_policy_can_not_be_loaded_without_a_process(
    played: PlayedEngine, autojump_clock: trio.testing.MockClock
) -> None:
    with pytest.raises(PolicyRefused, match="no policy process was ready"):
        await played.engine.load(ALLOW_ALL)


async def test_a_load_waits_for_the_process_to_come(played: PlayedEngine, nursery: trio.Nursery) -> None:
    nursery.start_soon(played.engine.load, ALLOW_ALL)
    await trio.testing.wait_all_tasks_blocked()
    await played.attach_peer().accept_policy()
    await until(lambda: played.engine.is_available)


@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_successor_that_does_not_take_the_policy_in_force_is_given_up(
    played: PlayedEngine, autojump_clock: trio.testing.MockClock, is_silent: bool
) -> None:
    (await serving(played)).close()
    await played.reason()
    successor = played.attach_peer()
    load = await successor.candidate()
    if not is_silent:
        await successor.send(PolicyCompiled(load.load_id, "not any more"))
    await trio.sleep(LOAD_SECONDS + 1)
    assert "the policy in force" in played.asked_for[-1][1]
    assert len(played.asked_for) == 2
    assert not played.engine.is_available


async def test_two_loads_come_one_after_the_other(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    nursery.start_soon(played.engine.load, SECOND)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(played.engine.load, sources("decision := 3", version="third"))
    assert (await peer.accept_policy()).modules == SECOND.modules
    await peer.accept_policy()
    await trio.testing.wait_all_tasks_blocked()
    assert played.engine.policy_version == "third"


# ------------------------------------------------------------------ what has to be done before a candidate is used


class Commit:
    """Waits in the middle of its work until it is let go, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.began, self.may_end = trio.Event(), trio.Event()
        self.error = error

    async def __call__(self) -> None:
        self.began.set()
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


async def compiled(peer: PlayedPeer) -> str:
    """Have the candidate that comes next compiled; returns its id."""
    load = await peer.candidate()
    await peer.send(PolicyCompiled(load.load_id, None))
    return load.load_id


async def test_what_a_commit_raises_leaves_the_policy_in_force(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    commit = Commit(OSError("the disk is full"))
    commit.may_end.set()
    nursery.start_soon(compiled, peer)
    with pytest.raises(OSError, match="full"):
        await played.engine.load(SECOND, commit)
    assert played.engine.policy_version == ALLOW_ALL.policy_version
    await serves(nursery, played, peer)  # and no UsePolicy before it
    await played.load(peer, SECOND)
    assert played.engine.policy_version == "second"


async def test_a_refused_candidate_is_never_committed(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    commit = Commit()

    async def refuse() -> None:
        load = await peer.candidate()
        await peer.send(PolicyCompiled(load.load_id, "no"))

    nursery.start_soon(refuse)
    with pytest.raises(PolicyRefused):
        await played.engine.load(SECOND, commit)
    assert not commit.began.is_set()


async def test_questions_are_answered_by_the_policy_in_force_while_a_commit_takes_its_time(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)
    commit = Commit()
    nursery.start_soon(played.engine.load, SECOND, commit)
    load = await peer.candidate()
    waiting = asking(nursery, played)  # for the compilation
    await trio.testing.wait_all_tasks_blocked()
    await peer.send(PolicyCompiled(load.load_id, None))
    await commit.began.wait()
    outcome = asking(nursery, played)
    for _ in range(2):
        await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
    assert (await waiting.rule(), await outcome.rule()) == ("played", "played")
    assert played.engine.policy_version == ALLOW_ALL.policy_version
    commit.may_end.set()
    assert await peer.received() == UsePolicy(load.load_id)


@pytest.mark.parametrize("successor", ["comes later", "has compiled", "compiles in that moment", "is compiling"])
async def test_what_was_committed_is_in_force_whatever_became_of_the_process_that_tried_it(
    played: PlayedEngine, nursery: trio.Nursery, successor: str
) -> None:
    peer = await serving(played)
    commit = Commit()
    done = trio.Event()

    async def load() -> None:
        await played.engine.load(SECOND, commit)
        done.set()

    nursery.start_soon(load)
    await compiled(peer)
    await commit.began.wait()
    peer.close()
    await played.reason()
    between = None
    if successor != "comes later":  # one that was brought up with what was in force until then
        between = played.attach_peer()
        old = await between.candidate()
        assert old.modules == ALLOW_ALL.modules
        if successor != "is compiling":
            await between.send(PolicyCompiled(old.load_id, None))
        if successor == "has compiled":
            assert await between.received() == UsePolicy(old.load_id)
    commit.may_end.set()
    with trio.fail_after(60):
        await done.wait()
    assert played.engine.policy_version == "second"
    if between is not None:
        assert "the policy before the one in force" in await played.reason()
    outcome = asking(nursery, played)
    fresh = played.attach_peer()
    assert (await fresh.accept_policy()).modules == SECOND.modules
    await fresh.send(Verdict((await fresh.asked()).question_id, ALLOWED))
    assert await outcome.rule() == "played"
