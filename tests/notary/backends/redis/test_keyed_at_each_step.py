"""A notary that ends at each step of a unit in Redis and ledger: a call under an `Idempotency-Key` runs once, and the
same call again is answered with its outcome."""

import pytest

from ipc.events import AuditEvent
from ipc.operations.calls import CallKey, Closed, Open, RepeatedCall
from ipc.operations.intents import ResolveIntent
from tests.notary.backends.redis.test_caps_at_each_step import AT_EACH_STEP, BEFORE, Step, ends_at
from tests.notary.running import Running
from tests.notary.samples import (
    changed,
    fresh_proof,
    make_approval,
    make_claim,
    make_denial,
    make_hold,
    make_open,
    make_result,
)
from tests.support.played_workers import PlayedWorker

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]
OVER = 3700.0
"""Seconds after which no process reports on a call."""


def keyed() -> Open:
    return make_open(idempotency=CallKey("k"))


def repeated(notary: Running) -> Closed | RepeatedCall:
    """The answer to the same call under its key, at another front."""
    answer: Closed | RepeatedCall = notary.attach("another").ask(keyed())
    return answer


def told(notary: Running) -> tuple[str | None, str]:
    """Code and call of the answer to a call that must not be made anew."""
    answer = repeated(notary)
    assert isinstance(answer, RepeatedCall), answer
    return answer.code, answer.call_id


def resent(notary: Running, name: str, number: int, asked: Open, step: Step) -> None:
    """Its front asks again under the same number; the proof of a unit that was undone stays used."""
    again = notary.attach(name)
    again.resend({number: changed(asked, proof=fresh_proof()) if step in BEFORE else asked})
    assert isinstance(again.answer(number), Closed)


def begun(notary: Running, call: Open) -> tuple[int, PlayedWorker]:
    """A call whose worker has its permit."""
    number = notary.front.begin(call)
    return number, notary.workers.of(call.intent_id)


@AT_EACH_STEP
def test_a_call_whose_notary_ends_as_it_is_opened_is_made_once(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    first = keyed()
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(first)[0])
    resent(notary, name, number, first, step)
    assert told(notary) == ("already_executed", first.intent_id)


@AT_EACH_STEP
def test_a_call_whose_front_is_gone_too_is_made_anew_only_if_it_was_not_opened(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    first = keyed()
    ends_at(notary, monkeypatch, step, lambda: notary.front.send(first)[0])
    if step in BEFORE:
        assert isinstance(repeated(notary), Closed)
        assert told(notary)[1] != first.intent_id
    else:
        assert told(notary)[1] == first.intent_id


@AT_EACH_STEP
def test_the_outcome_of_a_call_whose_notary_ends_as_it_is_told_is_that_of_all_repeats(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    first = keyed()
    number, worker = begun(notary, first)
    word = worker.word()

    def report() -> int:
        worker.run(word, make_result())
        return number

    name, _ = ends_at(notary, monkeypatch, step, report)
    if step in BEFORE:
        assert told(notary) == ("call_in_progress", first.intent_id)
    again = notary.attach(name)
    again.resend({number: first})
    if step in BEFORE:
        worker.run(worker.word(), make_result())
    assert isinstance(again.answer(number), Closed)
    assert told(notary) == ("already_executed", first.intent_id)
    assert worker.runs == [first.intent_id]


@AT_EACH_STEP
@pytest.mark.parametrize("outcome", ["happened", "did_not_happen"])
def test_what_an_operator_says_counts_for_repeats_once_it_is_written(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step, outcome: str
) -> None:
    first = keyed()
    begun(notary, first)
    notary.restart()
    notary.clock.time += OVER
    by = AuditEvent(event_type="IntentResolved", principal="operator:dev", decision="allow", reason="looked")
    said = ResolveIntent(first.intent_id, outcome, by)
    ends_at(notary, monkeypatch, step, lambda: notary.front.send(said)[0])
    if step in BEFORE:
        assert told(notary) == ("outcome_unknown", first.intent_id)
        notary.front.ask(said)
    if outcome == "happened":
        assert told(notary) == ("already_executed", first.intent_id)
    else:
        assert isinstance(repeated(notary), Closed)


@AT_EACH_STEP
def test_a_hold_whose_notary_ends_is_that_of_its_key_or_there_is_none(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    approval = make_approval(request_hash=keyed().event.request_hash)
    held = make_hold(approval, idempotency=CallKey("k"))
    ends_at(notary, monkeypatch, step, lambda: notary.front.send(held)[0])
    answer = repeated(notary)
    if step in BEFORE:
        assert isinstance(answer, Closed)
    else:
        assert isinstance(answer, RepeatedCall)
        assert answer.held is not None
        assert answer.call_id == approval.approval_id


@AT_EACH_STEP
def test_a_denial_whose_notary_ends_is_the_answer_of_its_key_once_it_is_written(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    approval = make_approval(request_hash=keyed().event.request_hash)
    notary.front.ask(make_hold(approval, idempotency=CallKey("k")))
    notary.front.ask(make_claim(approval, notary.front.front_id))
    denial = make_denial(approval)
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(denial)[0])
    again = notary.attach(name)
    again.resend({number: denial})
    again.answer(number)
    assert told(notary) == ("policy_denied", approval.approval_id)
