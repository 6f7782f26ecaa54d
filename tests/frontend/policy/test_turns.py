"""A policy process that is busy: principals take turns at it, by the time that their questions took."""

import trio
import trio.testing

from frontend.deadlines import QUESTION_SECONDS
from frontend.policy.process import AT_ONCE
from ipc.messages.deciding import Ask, PolicyCompiled, UsePolicy, Verdict
from tests.support.played_policy import ALLOWED, Outcome, PlayedEngine, PlayedPeer, asking, serving
from tests.support.policy import ALLOW_ALL


async def many(nursery: trio.Nursery, played: PlayedEngine, count: int, principal: str = "many") -> list[Outcome]:
    """Ask `count` questions of one principal, one after the other."""
    outcomes = []
    for number in range(count):
        outcomes.append(asking(nursery, played, principal=principal, action_id=f"{principal}-{number}"))
        await trio.testing.wait_all_tasks_blocked()
    return outcomes


async def answered(peer: PlayedPeer, ask: Ask, seconds: float = 0.0) -> None:
    """Answer a question that takes this long."""
    await trio.sleep(seconds)
    await peer.send(Verdict(ask.question_id, ALLOWED))


async def test_a_principal_with_one_question_waits_for_no_queue_of_another_one(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    await many(nursery, played, AT_ONCE + 5)
    (few,) = await many(nursery, played, 1, "few")
    first = [await peer.asked() for _ in range(AT_ONCE)]
    assert [ask.input["principal"] for ask in first] == ["many"] * AT_ONCE
    await answered(peer, first[0], 0.1)
    ask = await peer.asked()
    assert ask.input["principal"] == "few"
    for one in (*first[1:], ask):
        await answered(peer, one, 0.1)
    assert await few.rule() == "played"


async def test_one_principal_has_the_whole_process_and_its_questions_come_in_order(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    outcomes = await many(nursery, played, 3 * AT_ONCE)
    order = []
    for _ in outcomes:
        ask = await peer.asked()
        order.append(ask.input["action_id"])
        await answered(peer, ask, 0.01)
    assert [await outcome.rule() for outcome in outcomes] == ["played"] * len(outcomes)
    assert order == [f"many-{number}" for number in range(len(outcomes))]


async def test_a_question_that_waited_too_long_is_not_asked_any_more(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    outcomes = await many(nursery, played, AT_ONCE + 2)
    asked = [await peer.asked() for _ in range(AT_ONCE)]
    await answered(peer, asked[0], QUESTION_SECONDS / 2)
    asked.append(await peer.asked())
    assert await outcomes[-1].code() == "policy_engine_timeout"
    (later,) = await many(nursery, played, 1, "later")
    await answered(peer, asked[1])
    ask = await peer.asked()
    assert ask.input["principal"] == "later"
    for one in (*asked[2:], ask):
        await answered(peer, one)
    assert await later.rule() == "played"
    assert played.asked_for == []


async def test_what_waits_for_its_turn_is_asked_of_the_successor(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    outcomes = await many(nursery, played, AT_ONCE + 2)
    for _ in range(AT_ONCE):
        await peer.asked()
    peer.close()
    assert await outcomes[0].code() == "policy_engine_unavailable"
    successor = played.attach_peer()
    await successor.accept_policy()
    for outcome in outcomes[1:]:
        await answered(successor, await successor.asked())
        assert await outcome.rule() == "played"


async def test_what_waits_is_not_asked_behind_a_policy_that_is_being_compiled(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    outcomes = await many(nursery, played, AT_ONCE + 1)
    asked = [await peer.asked() for _ in range(AT_ONCE)]
    nursery.start_soon(played.engine.load, ALLOW_ALL)
    load = await peer.candidate()
    for ask in asked:
        await answered(peer, ask)
    with trio.move_on_after(0.01) as scope:
        await peer.received()
    assert scope.cancelled_caught
    await peer.send(PolicyCompiled(load.load_id, None))
    messages = [await peer.received() for _ in range(2)]
    (last,) = [one for one in messages if isinstance(one, Ask)]
    assert UsePolicy(load.load_id) in messages
    await answered(peer, last)
    assert [await outcome.rule() for outcome in outcomes] == ["played"] * len(outcomes)
