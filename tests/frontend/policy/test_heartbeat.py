"""A policy engine that stands still decides nothing: what it said before counts for a second after its last answer."""

import contextlib

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from frontend.deadlines import PolicyDeadlines
from frontend.errors import GateError
from ipc.channel.blocking import ChannelClosed
from ipc.messages.deciding import Verdict
from ipc.messages.pinging import Pong
from tests.support.patience import PATIENCE, PATIENT
from tests.support.played_policy import ALLOWED, Outcome, PlayedEngine, PlayedPeer, asking, playing, serving
from tests.support.policy import ALLOW_ALL, question, running_engine
from tests.support.worker_desk import until


async def remembering(played: PlayedEngine, nursery: trio.Nursery) -> PlayedPeer:
    """A process whose one decision is remembered."""
    peer = played.attach_peer()
    peer.reads = ()
    await played.load(peer, ALLOW_ALL)
    first = asking(nursery, played)
    await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
    assert await first.rule() == "played"
    return peer


async def attend(peer: PlayedPeer, asked: list[int]) -> None:
    """Answer all that comes, and note the questions, until the channel ends."""
    with contextlib.suppress(OSError, ChannelClosed, trio.ClosedResourceError):
        while True:
            asked.append((await peer.asked()).question_id)
            await peer.send(Verdict(asked[-1], ALLOWED))


async def remembered_until_asked(played: PlayedEngine, nursery: trio.Nursery) -> Outcome:
    """Decide again and again from memory; returns the first outcome that is not there at once."""
    with trio.fail_after(PATIENCE):
        while True:
            outcome = Outcome()
            nursery.start_soon(outcome.ask, played.engine)
            await trio.testing.wait_all_tasks_blocked()
            if not outcome.done.is_set():
                return outcome


async def test_a_remembered_decision_does_not_count_once_the_process_shows_no_life(nursery: trio.Nursery) -> None:
    deadlines = replace(PATIENT.policy, question_seconds=1.0)
    async with playing(deadlines) as played:
        await remembering(played, nursery)  # from here on it neither reads nor answers
        asked_again = await remembered_until_asked(played, nursery)
        assert await asked_again.code() == "policy_engine_timeout"


async def test_a_process_that_is_asked_again_and_answers_makes_memory_count_again(nursery: trio.Nursery) -> None:
    async with playing() as played:
        peer = await remembering(played, nursery)
        again = await remembered_until_asked(played, nursery)
        await peer.send(Verdict((await peer.asked()).question_id, ALLOWED))
        assert await again.rule() == "played"
        asked: list[int] = []
        nursery.start_soon(attend, peer, asked)
        with trio.fail_after(PATIENCE):
            while True:
                before = len(asked)
                assert (await played.engine.decide(question())).rule == "played"
                if len(asked) == before:
                    break


async def test_an_idle_process_that_shows_no_life_is_seen_and_given_up(nursery: trio.Nursery) -> None:
    deadlines = replace(PATIENT.policy, quiet_seconds=0.1, silent_seconds=PATIENCE)
    async with playing(deadlines) as played:
        await serving(played)
        await until(lambda: not played.engine.is_available)
    async with playing(replace(deadlines, silent_seconds=0.2)) as played:
        await serving(played)
        assert "has answered nothing for 0.2 s" in await played.reason()


async def test_a_sign_of_life_that_was_not_asked_for_costs_the_process(nursery: trio.Nursery) -> None:
    unasked = replace(PATIENT.policy, idle_beat_seconds=PATIENCE, beat_seconds=PATIENCE)
    async with playing(unasked) as played:
        peer = await serving(played)
        await peer.send(Pong())
        assert "a Pong without a Ping" in await played.reason()


async def test_life_is_asked_for_and_is_missed_in_time(nursery: trio.Nursery) -> None:
    async with running_engine() as supervisor:
        await supervisor.engine.require_life()
    async with playing(replace(PATIENT.policy, question_seconds=0.2)) as played:
        with pytest.raises(GateError) as error:
            await played.engine.require_life()
        assert error.value.code == "policy_engine_unavailable"
        peer = await serving(played)
        with pytest.raises(GateError) as error:
            await played.engine.require_life()
        assert error.value.code == "policy_engine_unavailable"
        nursery.start_soon(attend, peer, [])
        await until_lives(played)
        peer.close()
        with pytest.raises(GateError):
            await played.engine.require_life()


async def until_lives(played: PlayedEngine) -> None:
    with trio.fail_after(PATIENCE):
        while True:
            try:
                return await played.engine.require_life()
            except GateError:
                await trio.lowlevel.checkpoint()


def test_the_deadlines_leave_a_busy_machine_its_time() -> None:
    deadlines = PolicyDeadlines()
    assert deadlines.beat_seconds < 1.0 < deadlines.quiet_seconds < deadlines.silent_seconds
