"""Decisions that are remembered: by what, for how long, how many; and what is never remembered."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from msgspec import UNSET

from frontend.deadlines import PolicyDeadlines
from frontend.policy import heartbeat
from frontend.policy import memo as memos
from frontend.policy.engine import MemoStatus, PolicyRefused
from frontend.policy.memo import Memo, memo_for
from frontend.policy.question import ATTRIBUTES, BudgetUnread, Decision, Question
from ipc.messages.deciding import PolicyCompiled, UsePolicy, Verdict
from tests.support.patience import PATIENCE
from tests.support.played_policy import ALLOWED, PlayedEngine, PlayedPeer, asking, playing
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
    changed: dict[str, object] = dict.fromkeys(ATTRIBUTES, ("other",)) | {"request": '{"/a":1}'}
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


@pytest.fixture(autouse=True)
def life_counts_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remembered decisions count, although on a slow machine no played process answers for a second."""
    monkeypatch.setattr(heartbeat, "FRESH_SECONDS", PATIENCE)


async def load(played: PlayedEngine, peer: PlayedPeer, reads: tuple[str, ...] | None = READS) -> None:
    peer.reads = reads
    await played.load(peer, SECOND)


@pytest.fixture
async def played(deadlines: PolicyDeadlines) -> AsyncIterator[PlayedEngine]:
    async with playing(deadlines) as played:
        await load(played, played.attach_peer())
        yield played


async def told(played: PlayedEngine, peer: PlayedPeer, document: str | None = ALLOWED, **changes: object) -> None:
    """Ask a question that reaches the process, which answers it so."""
    async with trio.open_nursery() as nursery:
        asking(nursery, played, **changes)
        ask = await peer.asked()
        await peer.channel.send(Verdict(ask.question_id, document, None if document else "failed"))


async def test_a_question_without_the_budget_is_decided_only_by_a_policy_that_does_not_read_it(
    deadlines: PolicyDeadlines,
) -> None:
    for reads, may_decide in ((READS, True), ((*READS, "budgets_before"), False), (None, False)):
        async with playing(deadlines) as played:
            with pytest.raises(BudgetUnread):
                await played.engine.decide(question(calls_remaining=UNSET))
            peer = played.attach_peer()
            await load(played, peer, reads)
            if may_decide:
                await told(played, peer, calls_remaining=UNSET)
                assert (await played.engine.decide(question(calls_remaining=UNSET))).rule == "played"
            else:
                with pytest.raises(BudgetUnread):
                    await played.engine.decide(question(calls_remaining=UNSET))


async def test_a_question_without_the_budget_is_decided_by_no_policy_that_came_meanwhile(played: PlayedEngine) -> None:
    (peer,) = played.peers
    refused = trio.Event()

    async def ask() -> None:
        with pytest.raises(BudgetUnread):
            await played.engine.decide(question(calls_remaining=UNSET))
        refused.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        asked = await peer.asked()
        await load(played, peer, (*READS, "budgets_before"))
        await peer.channel.send(Verdict(asked.question_id, ALLOWED, None))
        await refused.wait()


async def test_a_question_that_was_answered_is_not_asked_again(played: PlayedEngine) -> None:
    (peer,) = played.peers
    await told(played, peer, principal="a")
    await told(played, peer, DENIED, principal="b")
    for _ in range(3):
        assert (await played.engine.decide(question(principal="a", request_hash="x"))).rule == "played"
        assert (await played.engine.decide(question(principal="b", calls_remaining=0))).rule == "no"
    assert played.engine.memo_status == MemoStatus(True, None, 2)
    await told(played, peer, principal="c")  # the next thing that the process hears


async def test_what_failed_or_was_no_decision_is_asked_again(played: PlayedEngine) -> None:
    (peer,) = played.peers
    for said in (None, "{}", ALLOWED.replace('"played"', '""'), ALLOWED[:-1] + ', "allow": false}'):
        await told(played, peer, said)
        assert played.engine.memo_status.entries == 0
    await told(played, peer)
    assert (await played.engine.decide(question())).rule == "played"


async def test_what_came_too_late_is_asked_again(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    (peer,) = played.peers
    first = asking(nursery, played, principal="slow")
    ask = await peer.asked()
    await trio.sleep(0.5)
    second = asking(nursery, played, principal="other")
    other = await peer.asked()
    await peer.channel.send(Verdict(other.question_id, ALLOWED))  # it is busy, not hung
    assert await second.rule() == "played"
    assert await first.code() == "policy_engine_timeout"
    await peer.channel.send(Verdict(ask.question_id, ALLOWED))
    assert played.engine.memo_status.entries == 1
    await told(played, peer, principal="slow")


async def test_what_is_remembered_waits_for_no_process_that_compiles(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    (peer,) = played.peers
    await told(played, peer)
    nursery.start_soon(played.engine.load, SECOND)
    candidate = await peer.candidate()
    assert (await played.engine.decide(question())).rule == "played"
    await peer.channel.send(PolicyCompiled(candidate.load_id, None, READS))
    assert isinstance(await peer.received(), UsePolicy)
    await told(played, peer, DENIED)
    assert (await played.engine.decide(question())).rule == "no"


async def test_from_the_moment_that_another_policy_is_in_force_nothing_of_before_is_answered(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    (peer,) = played.peers
    await told(played, peer)
    for reads in (READS, None):
        await load(played, peer, reads)
        assert played.engine.memo_status.entries == 0
        await told(played, peer, DENIED)
    assert played.engine.memo_status.in_use is False


async def test_what_the_policy_before_answers_late_is_not_remembered_of_the_one_after(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    (peer,) = played.peers
    late = asking(nursery, played)
    ask = await peer.asked()
    await load(played, peer)
    await peer.channel.send(Verdict(ask.question_id, ALLOWED))
    assert await late.rule() == "played"
    assert played.engine.memo_status == MemoStatus(True, None, 0)
    await told(played, peer, DENIED)


async def test_a_successor_that_holds_the_policy_before_answers_nothing_from_memory(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    """The process that compiled the candidate dies while the change is committed, and its successor is quick."""
    (peer,) = played.peers

    async def compile_it() -> None:
        candidate = await peer.candidate()
        await peer.channel.send(PolicyCompiled(candidate.load_id, None, READS))

    async def commit() -> None:
        peer.close()
        await played.reason()
        successor = played.attach_peer()
        successor.reads = READS
        await successor.accept_policy()
        await told(played, successor)
        assert played.engine.memo_status.entries == 1

    nursery.start_soon(compile_it)
    await played.engine.load(sources("decision := 2", version="third"), commit)
    assert played.engine.memo_status == MemoStatus(False, memos.NOT_LOADED, 0)


async def test_a_candidate_that_is_refused_takes_no_memory_away(played: PlayedEngine, nursery: trio.Nursery) -> None:
    (peer,) = played.peers
    await told(played, peer)

    async def refuse() -> None:
        candidate = await peer.candidate()
        await peer.channel.send(PolicyCompiled(candidate.load_id, "no"))

    nursery.start_soon(refuse)
    with pytest.raises(PolicyRefused):
        await played.engine.load(SECOND)
    assert (await played.engine.decide(question())).rule == "played"


async def test_with_the_process_goes_all_that_it_said(played: PlayedEngine) -> None:
    (peer,) = played.peers
    await told(played, peer)
    peer.close()
    await played.reason()
    assert played.engine.memo_status == MemoStatus(False, memos.NOT_LOADED, 0)
    successor = played.attach_peer()
    successor.reads = READS
    await successor.accept_policy()
    await told(played, successor, DENIED)
    assert played.engine.memo_status == MemoStatus(True, None, 1)


async def test_a_policy_whose_reading_is_unknown_is_asked_each_time() -> None:
    async with playing() as played:
        peer = played.attach_peer()
        await load(played, peer, None)
        for _ in range(2):
            await told(played, peer)
        assert played.engine.memo_status.in_use is False


async def test_a_real_process_says_what_a_policy_reads_and_why_that_is_unknown() -> None:
    async with running_engine() as supervisor:
        status = supervisor.engine.memo_status
        assert status == MemoStatus(False, "data.gateway.decision uses input as a whole", 0)
        await supervisor.engine.load(sources("decision := " + document()))
        await supervisor.engine.decide(question(principal="a"))
        assert (await supervisor.engine.decide(question(principal="b"))).rule == "test"
        assert supervisor.engine.memo_status == MemoStatus(True, None, 1)


async def test_before_there_is_a_policy_there_is_no_memory() -> None:
    async with playing() as played:
        assert played.engine.memo_status == MemoStatus(False, memos.NOT_LOADED, 0)
