"""Decisions that are remembered: by what, for how long, how many; and what is never remembered."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from frontend.policy import memo as memos
from frontend.policy.deadlines import PolicyDeadlines
from frontend.policy.engine import MemoStatus, PolicyRefused
from frontend.policy.memo import Memo, memo_for
from frontend.policy.question import ATTRIBUTES, Decision, Question
from ipc.messages import LoadPolicy, PolicyCompiled, UsePolicy, Verdict
from tests.support.played_policy import ALLOWED, PlayedHouse, PlayedPeer, asking, playing
from tests.support.policy import document, question, running_engine, sources

SECOND = sources("decision := 1", version="second")
READS = ("principal", "scopes")
DENIED = ALLOWED.replace("true", "false", 1).replace("played", "no")


def decision(rule: str = "r", **changes: Any) -> Decision:
    return msgspec.structs.replace(Decision(True, False, "", rule, (), "v"), **changes)


# ------------------------------------------------------------------ the table alone


def test_every_field_of_the_input_is_made_of_one_attribute_that_is_known() -> None:
    assert set(ATTRIBUTES) == set(question().as_input())
    assert sorted(ATTRIBUTES.values()) == sorted(Question.__struct_fields__)
    changed: dict[str, object] = dict.fromkeys(ATTRIBUTES, ("other",))
    for name, attribute in ATTRIBUTES.items():
        before, after = question().as_input(), question(**{attribute: changed[name]}).as_input()
        assert [field for field in before if before[field] != after[field]] == [name]


def test_questions_that_differ_in_what_is_read_are_told_apart_and_others_are_not() -> None:
    memo = Memo(READS)
    key = memo.key_of(question(principal="a"))
    memo.put(key, decision("one"))
    assert memo.get(memo.key_of(question(principal="a", request_hash="other", calls_remaining=0))) == decision("one")
    assert memo.get(memo.key_of(question(principal="b"))) is None
    assert memo.get(memo.key_of(question(principal="a", scopes=()))) is None
    assert memo.get(memo.key_of(question(principal="a", scopes=("tools:call", "x")))) is None


@pytest.mark.parametrize("reads", [(), ("budgets_before",)])
def test_a_policy_may_read_one_field_or_none(reads: tuple[str, ...]) -> None:
    memo = Memo(reads)
    memo.put(memo.key_of(question(calls_remaining=None)), decision())
    assert memo.get(memo.key_of(question(principal="other", calls_remaining=None))) == decision()
    assert (memo.get(memo.key_of(question(calls_remaining=0))) is None) is bool(reads)


def test_what_was_asked_longest_ago_makes_room() -> None:
    memo = Memo(("principal",), max_entries=3)
    for name in "abc":
        memo.put(name, decision(name))
    assert memo.get("a") == decision("a")
    memo.put("d", decision("d"))
    assert [name for name in "abcd" if memo.get(name)] == ["a", "c", "d"]
    assert len(memo) == 3


def test_bytes_are_bounded_and_what_is_too_large_is_not_kept() -> None:
    memo = Memo(("targets",), max_bytes=20_000)
    for number in range(100):
        memo.put(((f"{number:02}" * 500,),), decision())
        assert len(memo) <= 20
    assert len(memo) >= 10
    before = len(memo)
    memo.put((("x" * memos.MAX_ENTRY_BYTES,),), decision())
    memo.put("y", decision(deny_reason="z" * memos.MAX_ENTRY_BYTES))
    assert len(memo) == before


@pytest.mark.parametrize(
    ("compiled", "reason"),
    [
        (PolicyCompiled("l", None), "the policy process does not say what the policy reads"),
        (PolicyCompiled("l", None, None, "it reads\x1b all"), "it reads all"),
        (PolicyCompiled("l", None, ("principal", "colour")), "the policy reads input.colour, which no question has"),
        (
            PolicyCompiled("l", None, ("calls_remaining",)),
            "the policy reads input.calls_remaining, which no question has",
        ),
    ],
)
def test_a_policy_whose_reading_is_not_known_has_no_memo(compiled: PolicyCompiled, reason: str) -> None:
    assert memo_for(compiled) == reason


# ------------------------------------------------------------------ the engine


async def accept(peer: PlayedPeer, reads: tuple[str, ...] | None = READS) -> None:
    load = await peer.received()
    assert isinstance(load, LoadPolicy)
    await peer.channel.send(PolicyCompiled(load.load_id, None, reads))
    assert await peer.received() == UsePolicy(load.load_id)


async def load(house: PlayedHouse, peer: PlayedPeer, reads: tuple[str, ...] | None = READS) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept, peer, reads)
        await house.engine.load(SECOND)


@pytest.fixture
async def house(deadlines: PolicyDeadlines) -> AsyncIterator[PlayedHouse]:
    async with playing(deadlines) as house:
        await load(house, house.attach_peer())
        yield house


async def told(house: PlayedHouse, peer: PlayedPeer, document: str | None = ALLOWED, **changes: object) -> None:
    """Ask a question that reaches the process, which answers it so."""
    async with trio.open_nursery() as nursery:
        asking(nursery, house, **changes)
        ask = await peer.asked()
        await peer.channel.send(Verdict(ask.question_id, document, None if document else "failed"))


async def test_a_question_that_was_answered_is_not_asked_again(house: PlayedHouse) -> None:
    (peer,) = house.peers
    await told(house, peer, principal="a")
    await told(house, peer, DENIED, principal="b")
    for _ in range(3):
        assert (await house.engine.decide(question(principal="a", request_hash="x"))).rule == "played"
        assert (await house.engine.decide(question(principal="b", calls_remaining=0))).rule == "no"
    assert house.engine.memo_status == MemoStatus(True, None, 2)
    await told(house, peer, principal="c")  # the next thing that the process hears


async def test_what_failed_or_was_no_decision_is_asked_again(house: PlayedHouse) -> None:
    (peer,) = house.peers
    for said in (None, "{}", ALLOWED.replace('"played"', '""'), ALLOWED[:-1] + ', "allow": false}'):
        await told(house, peer, said)
        assert house.engine.memo_status.entries == 0
    await told(house, peer)
    assert (await house.engine.decide(question())).rule == "played"


async def test_what_came_too_late_is_asked_again(
    house: PlayedHouse, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    (peer,) = house.peers
    first = asking(nursery, house, principal="slow")
    ask = await peer.asked()
    await trio.sleep(0.5)
    second = asking(nursery, house, principal="other")
    other = await peer.asked()
    await peer.channel.send(Verdict(other.question_id, ALLOWED))  # it is busy, not hung
    assert await second.rule() == "played"
    assert await first.code() == "policy_engine_timeout"
    await peer.channel.send(Verdict(ask.question_id, ALLOWED))
    assert house.engine.memo_status.entries == 1
    await told(house, peer, principal="slow")


async def test_what_is_remembered_waits_for_no_process_that_compiles(house: PlayedHouse, nursery: trio.Nursery) -> None:
    (peer,) = house.peers
    await told(house, peer)
    nursery.start_soon(house.engine.load, SECOND)
    candidate = await peer.received()
    assert isinstance(candidate, LoadPolicy)
    assert (await house.engine.decide(question())).rule == "played"
    await peer.channel.send(PolicyCompiled(candidate.load_id, None, READS))
    assert isinstance(await peer.received(), UsePolicy)
    await told(house, peer, DENIED)
    assert (await house.engine.decide(question())).rule == "no"


async def test_from_the_moment_that_another_policy_is_in_force_nothing_of_before_is_answered(
    house: PlayedHouse, nursery: trio.Nursery
) -> None:
    (peer,) = house.peers
    await told(house, peer)
    for reads in (READS, None):
        await load(house, peer, reads)
        assert house.engine.memo_status.entries == 0
        await told(house, peer, DENIED)
    assert house.engine.memo_status.in_use is False


async def test_what_the_policy_before_answers_late_is_not_remembered_of_the_one_after(
    house: PlayedHouse, nursery: trio.Nursery
) -> None:
    (peer,) = house.peers
    late = asking(nursery, house)
    ask = await peer.asked()
    await load(house, peer)
    await peer.channel.send(Verdict(ask.question_id, ALLOWED))
    assert await late.rule() == "played"
    assert house.engine.memo_status == MemoStatus(True, None, 0)
    await told(house, peer, DENIED)


async def test_a_successor_that_holds_the_policy_before_answers_nothing_from_memory(
    house: PlayedHouse, nursery: trio.Nursery
) -> None:
    """The process that compiled the candidate dies while the change is committed, and its successor is quick."""
    (peer,) = house.peers

    async def compile_it() -> None:
        candidate = await peer.received()
        await peer.channel.send(PolicyCompiled(candidate.load_id, None, READS))  # type: ignore[union-attr]

    async def commit() -> None:
        peer.close()
        await house.reason()
        successor = house.attach_peer()
        await accept(successor)
        await told(house, successor)
        assert house.engine.memo_status.entries == 1

    nursery.start_soon(compile_it)
    await house.engine.load(sources("decision := 2", version="third"), commit)
    assert house.engine.memo_status == MemoStatus(False, memos.NOT_LOADED, 0)


async def test_a_candidate_that_is_refused_takes_no_memory_away(house: PlayedHouse, nursery: trio.Nursery) -> None:
    (peer,) = house.peers
    await told(house, peer)

    async def refuse() -> None:
        candidate = await peer.received()
        assert isinstance(candidate, LoadPolicy)
        await peer.channel.send(PolicyCompiled(candidate.load_id, "no"))

    nursery.start_soon(refuse)
    with pytest.raises(PolicyRefused):
        await house.engine.load(SECOND)
    assert (await house.engine.decide(question())).rule == "played"


async def test_with_the_process_goes_all_that_it_said(house: PlayedHouse) -> None:
    (peer,) = house.peers
    await told(house, peer)
    peer.close()
    await house.reason()
    assert house.engine.memo_status == MemoStatus(False, memos.NOT_LOADED, 0)
    successor = house.attach_peer()
    await accept(successor)
    await told(house, successor, DENIED)
    assert house.engine.memo_status == MemoStatus(True, None, 1)


async def test_a_policy_whose_reading_is_unknown_is_asked_each_time() -> None:
    async with playing() as house:
        peer = house.attach_peer()
        await load(house, peer, None)
        for _ in range(2):
            await told(house, peer)
        assert house.engine.memo_status.in_use is False


async def test_a_real_process_says_what_a_policy_reads_and_why_that_is_unknown() -> None:
    async with running_engine() as supervisor:
        status = supervisor.engine.memo_status
        assert status == MemoStatus(False, "data.gateway.decision uses input as a whole", 0)
        await supervisor.engine.load(sources("decision := " + document()))
        await supervisor.engine.decide(question(principal="a"))
        assert (await supervisor.engine.decide(question(principal="b"))).rule == "test"
        assert supervisor.engine.memo_status == MemoStatus(True, None, 1)


async def test_before_there_is_a_policy_there_is_no_memory() -> None:
    async with playing() as house:
        assert house.engine.memo_status == MemoStatus(False, memos.NOT_LOADED, 0)
