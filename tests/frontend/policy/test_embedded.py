"""The embedded engine against processes that the test plays: whatever they do, nothing is allowed that they did not."""

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontend.deadlines import QUESTION_SECONDS
from frontend.errors import GateError
from frontend.policy.embedded import MAX_OPEN_QUESTIONS, EmbeddedPolicy
from ipc.channel.framing import encode_frame
from ipc.messages.deciding import PolicyCompiled, UsePolicy, Verdict
from tests.support.played_policy import ALLOWED, PlayedEngine, PlayedPeer, asking, playing, serves, serving
from tests.support.policy import ALLOW_ALL, question


async def test_an_answer_reaches_its_own_question(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    first, second = asking(nursery, played, action_id="a"), asking(nursery, played, action_id="b")
    asked = [await peer.asked(), await peer.asked()]
    for ask in reversed(asked):
        await peer.send(Verdict(ask.question_id, ALLOWED.replace("played", str(ask.input["action_id"]))))
    assert (await first.rule(), await second.rule()) == ("a", "b")


Act = Callable[[PlayedPeer, int], Awaitable[None]]


async def _garbage(peer: PlayedPeer, _: int) -> None:
    await peer.send_bytes(b"\0\0\0\x05hello")


async def _oversized(peer: PlayedPeer, _: int) -> None:
    await peer.send_bytes(b"\xff\xff\xff\xff")


async def _foreign(peer: PlayedPeer, _: int) -> None:
    await peer.send(UsePolicy("x"))


async def _close(peer: PlayedPeer, _: int) -> None:
    peer.close()


async def _half_frame(peer: PlayedPeer, question_id: int) -> None:
    await peer.send_bytes(encode_frame(Verdict(question_id, ALLOWED), 10_000)[:-3])
    peer.close()


async def _unknown(peer: PlayedPeer, question_id: int) -> None:
    await peer.send(Verdict(question_id + 1, ALLOWED))


async def _neither(peer: PlayedPeer, question_id: int) -> None:
    await peer.send(Verdict(question_id, None))


async def _both(peer: PlayedPeer, question_id: int) -> None:
    await peer.send(Verdict(question_id, ALLOWED, "an error"))


async def _compiled(peer: PlayedPeer, _: int) -> None:
    await peer.send(PolicyCompiled("load-9", None))


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (_garbage, "it broke the protocol: not a message"),
        (_oversized, "it broke the protocol: frame of 4294967295 bytes"),
        (_foreign, "it broke the protocol: not a message"),
        (_close, "it closed its channel"),
        (_half_frame, "it broke the protocol: stream ended inside a frame"),
        (_unknown, "it broke the protocol: an answer to question 2, which is not open"),
        (_neither, "it broke the protocol: an answer must hold either"),
        (_both, "it broke the protocol: an answer must hold either"),
        (_compiled, "it broke the protocol: PolicyCompiled for 'load-9', which was not sent"),
    ],
)
async def test_a_process_that_lies_or_leaves_is_given_up_and_its_question_denied(
    played: PlayedEngine, nursery: trio.Nursery, act: Act, reason: str
) -> None:
    peer = await serving(played)
    outcome = asking(nursery, played)
    await act(peer, (await peer.asked()).question_id)
    assert await outcome.code() == "policy_engine_unavailable"
    assert (await played.reason()).startswith(reason)
    assert played.asked_for[-1][0] == 1
    assert not played.engine.is_available


async def test_a_second_answer_costs_the_process_and_not_the_first_answer(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)
    outcome = asking(nursery, played)
    question_id = (await peer.asked()).question_id
    await peer.send(Verdict(question_id, ALLOWED))
    await peer.send(Verdict(question_id, ALLOWED))
    assert await outcome.rule() == "played"
    assert "which is not open" in await played.reason()


@pytest.mark.parametrize("document", ["", "null", "{}", ALLOWED.replace("true", "1"), ALLOWED.replace("allow", "alow")])
async def test_an_answer_that_is_no_decision_denies(played: PlayedEngine, nursery: trio.Nursery, document: str) -> None:
    peer = await serving(played)
    outcome = asking(nursery, played)
    await peer.send(Verdict((await peer.asked()).question_id, document))
    assert await outcome.code() == "policy_engine_unavailable"
    assert played.asked_for == []


async def test_an_engine_that_failed_denies_with_its_message(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    outcome = asking(nursery, played)
    await peer.send(Verdict((await peer.asked()).question_id, None, "divide by zero"))
    assert await outcome.code() == "policy_engine_unavailable"
    assert outcome.error is not None
    assert outcome.error.cause == "the engine failed: divide by zero"


async def test_what_waited_behind_the_lost_question_is_asked_of_the_successor(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)
    first = asking(nursery, played, action_id="a")
    await peer.asked()
    second = asking(nursery, played, action_id="b")
    await peer.asked()
    peer.close()
    assert await first.code() == "policy_engine_unavailable"
    successor = played.attach_peer()
    load = await successor.accept_policy()
    assert load.modules == ALLOW_ALL.modules
    ask = await successor.asked()
    assert ask.input["action_id"] == "b"
    await successor.send(Verdict(ask.question_id, ALLOWED))
    assert await second.rule() == "played"


async def test_a_question_is_asked_of_two_processes_and_of_no_third(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    peer = await serving(played)
    outcomes = []
    for name in "abc":
        outcomes.append(asking(nursery, played, action_id=name))
        await peer.asked()
    peer.close()
    successor = played.attach_peer()
    await successor.accept_policy()
    assert [(await successor.asked()).input["action_id"] for _ in "bc"] == ["b", "c"]
    successor.close()
    assert [await outcome.code() for outcome in outcomes] == ["policy_engine_unavailable"] * 3
    assert all("was lost" in str(outcome.error and outcome.error.cause) for outcome in outcomes)


async def test_a_silent_process_times_out_and_the_rest_is_asked_again_in_its_own_time(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    first = asking(nursery, played, action_id="a")
    await peer.asked()
    await trio.sleep(QUESTION_SECONDS / 2)
    second = asking(nursery, played, action_id="b")
    await peer.asked()
    third = asking(nursery, played, action_id="c")
    await peer.asked()
    assert await first.code() == "policy_engine_timeout"
    assert first.seconds == pytest.approx(QUESTION_SECONDS)
    assert await played.reason() == "question 1 was not answered within 1.0 s"
    successor = played.attach_peer()
    await successor.accept_policy()
    ask = await successor.asked()
    assert ask.input["action_id"] == "b"
    await successor.send(Verdict(ask.question_id, ALLOWED))
    assert await second.rule() == "played"
    assert await third.code() == "policy_engine_timeout"
    assert third.seconds == pytest.approx(QUESTION_SECONDS)


async def test_a_process_that_is_slow_but_goes_on_answering_is_kept(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    outcomes = []
    for _ in range(4):
        outcomes.append(asking(nursery, played))
        await trio.testing.wait_all_tasks_blocked()
    for _ in range(4):
        ask = await peer.asked()
        await trio.sleep(QUESTION_SECONDS * 0.4)
        await peer.send(Verdict(ask.question_id, ALLOWED))
    assert [await outcomes[0].rule(), await outcomes[1].rule()] == ["played", "played"]
    assert [await outcomes[2].code(), await outcomes[3].code()] == ["policy_engine_timeout"] * 2
    await serves(nursery, played, peer)
    assert played.asked_for == []


async def test_without_a_process_questions_are_denied_in_time(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    outcome = asking(nursery, played)
    assert await outcome.code() == "policy_engine_unavailable"
    assert outcome.seconds == pytest.approx(QUESTION_SECONDS)


async def test_a_process_without_a_policy_decides_nothing(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    played.attach_peer()
    assert await asking(nursery, played).code() == "policy_engine_unavailable"
    assert not played.engine.is_available
    assert played.engine.policy_version == ""


async def test_a_question_that_can_not_be_written_fails_alone(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    assert await asking(nursery, played, fs_path="\ud800").code() == "policy_engine_unavailable"
    assert await asking(nursery, played, fs_path="x" * (17 << 20)).code() == "policy_engine_unavailable"
    await serves(nursery, played, peer)


async def test_the_answer_to_a_caller_who_left_does_no_harm(played: PlayedEngine, nursery: trio.Nursery) -> None:
    peer = await serving(played)
    async with trio.open_nursery() as leaving:
        asking(leaving, played)
        ask = await peer.asked()
        leaving.cancel_scope.cancel()
    await peer.send(Verdict(ask.question_id, ALLOWED))
    await serves(nursery, played, peer)
    assert played.asked_for == []


async def test_a_hanging_question_whose_caller_left_still_costs_the_process(
    played: PlayedEngine, autojump_clock: trio.testing.MockClock
) -> None:
    peer = await serving(played)
    async with trio.open_nursery() as leaving:
        asking(leaving, played)
        await peer.asked()
        leaving.cancel_scope.cancel()
    assert "was not answered" in await played.reason()


async def test_a_process_that_does_not_read_is_given_up(
    played: PlayedEngine, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    await serving(played)
    outcome = asking(nursery, played, fs_path="x" * (4 << 20))
    assert await outcome.code() in ("policy_engine_timeout", "policy_engine_unavailable")
    assert await played.reason() in ("it does not read its channel", "question 1 was not answered within 1.0 s")


async def test_open_questions_are_bounded(played: PlayedEngine, nursery: trio.Nursery) -> None:
    for _ in range(MAX_OPEN_QUESTIONS):
        asking(nursery, played)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(GateError) as refusal:
        await played.engine.decide(question())
    assert refusal.value.code == "policy_engine_unavailable"
    assert refusal.value.cause == f"{MAX_OPEN_QUESTIONS} questions are open"


async def test_an_engine_that_does_not_run_denies() -> None:
    def nobody(pid: int, reason: str) -> None:
        raise AssertionError

    with pytest.raises(GateError) as refusal:
        await EmbeddedPolicy(nobody).decide(question())
    assert refusal.value.code == "policy_engine_unavailable"


async def test_questions_that_are_open_when_the_engine_stops_are_denied(nursery: trio.Nursery) -> None:
    async with playing() as played:
        peer = await serving(played)
        outcome = asking(nursery, played)
        await peer.asked()
    assert await outcome.code() == "policy_engine_unavailable"


async def test_a_process_that_is_attached_takes_the_place_of_the_one_before(
    played: PlayedEngine, nursery: trio.Nursery
) -> None:
    await serving(played)
    unused = played.attach_peer()
    successor = played.attach_peer()
    await successor.accept_policy()
    await serves(nursery, played, successor)
    with pytest.raises(Exception):  # noqa: B017, PT011 - closed, in whichever way the system says so
        await unused.asked()
    assert played.asked_for == []


verdicts = st.builds(
    Verdict,
    question_id=st.integers(-1, 3),
    document=st.none() | st.sampled_from(["", "{}", ALLOWED.replace("true", '"true"'), ALLOWED.replace("{", "[")]),
    error=st.none() | st.just("x"),
)
streams = st.lists(
    st.one_of(
        st.binary(max_size=12),
        verdicts.map(lambda verdict: encode_frame(verdict, 10_000)),
        st.builds(PolicyCompiled, load_id=st.text(max_size=3), error=st.none()).map(lambda m: encode_frame(m, 100)),
        st.builds(lambda cut: encode_frame(Verdict(1, ALLOWED), 10_000)[:cut], st.integers(0, 60)),
    ),
    max_size=4,
).map(b"".join)


@settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])
@given(stream=streams)
def test_no_stream_of_bytes_that_holds_no_whole_answer_allows(stream: bytes) -> None:
    async def play() -> None:
        async with playing() as played, trio.open_nursery() as nursery:
            peer = await serving(played)
            outcome = asking(nursery, played)
            await peer.asked()
            if stream:
                await peer.send_bytes(stream)
            peer.close()
            assert await outcome.code() in ("policy_engine_unavailable", "policy_engine_timeout")

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))
