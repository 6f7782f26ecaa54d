"""A notary that ends at each step of a unit in Redis and ledger: the amount of a call counts once with it, or not at
all, and is given back once."""

from collections.abc import Callable

import pytest

from ipc.operations.calls import Closed, Open
from ipc.operations.caps import ReadHeldCaps, SumCap
from ipc.operations.holds import GetHold, Hold
from tests.notary.backends import order
from tests.notary.backends.order import ended
from tests.notary.capped_calls import POINTER, WINDOWS, approved_of, hold_of, opening_of, outcome_of, uses_of
from tests.notary.running import Running
from tests.notary.samples import changed, fresh_proof, make_claim, make_denial

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]
ACTION, PAYER = "text_digest", "uid:1000"


def spending(value: str) -> Open:
    return opening_of(ACTION, PAYER, uses_of(PAYER, value, is_spared=True))


def waiting(value: str, notary: Running) -> Hold:
    return hold_of(ACTION, PAYER, uses_of(PAYER, value, is_spared=True), notary.clock.time)


def total(notary: Running) -> str:
    (one,) = notary.front.ask(SumCap(ACTION, POINTER, "principal", WINDOWS["principal"])).sums
    return str(one.total)


BEFORE = (*order.NOT_DONE, order.recovered)
"""Steps after which the next notary finds nothing of the unit."""
AT_EACH_STEP = pytest.mark.parametrize("step", [*BEFORE, *order.DONE], ids=lambda step: step.__name__)
Step = Callable[..., None]


def ends_at(notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step, begin: Callable[[], int]) -> tuple[str, int]:
    """Have the notary end at this step of what `begin` has it do, and start the next one. The front's name, and the
    number that it asked under."""
    front = notary.front
    with monkeypatch.context() as patch:
        step(notary, patch)
        number = begin()
        with pytest.raises(order.GONE):
            front.heard(number)
            front.heard(0)  # it was answered, and ends all the same
    ended(notary)
    return front.front_id, number


@AT_EACH_STEP
def test_the_amount_of_a_call_whose_notary_ends_counts_once_with_it_or_not_at_all(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    opening = spending("20")
    notary.front.ask(spending("10"))
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(opening)[0])
    assert total(notary) == ("10" if step in BEFORE else "30")
    # The front asks again under the same number; the proof of a unit that was undone stays used.
    again = notary.attach(name)
    again.resend({number: changed(opening, proof=fresh_proof()) if step in BEFORE else opening})
    assert isinstance(again.answer(number), Closed)
    assert total(notary) == "30"


@AT_EACH_STEP
def test_the_amount_of_a_call_that_did_not_happen_is_given_back_once_whenever_its_notary_ends(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    opening, result = spending("20"), outcome_of("did_not_happen")
    notary.front.ask(spending("10"))
    number = notary.front.begin(opening)
    worker = notary.workers.of(opening.intent_id)
    word = worker.word()

    def report() -> int:
        worker.run(word, result)
        return number

    name, _ = ends_at(notary, monkeypatch, step, report)
    assert total(notary) == ("30" if step in BEFORE else "10")
    again = notary.attach(name)
    again.resend({number: opening})
    if step in BEFORE:
        worker.run(worker.word(), result)
    assert isinstance(again.answer(number), Closed)
    assert total(notary) == "10"
    assert worker.runs == [opening.intent_id]


@AT_EACH_STEP
def test_the_amount_of_a_hold_whose_notary_ends_counts_as_long_as_there_is_the_hold(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    held = waiting("20", notary)
    notary.front.ask(spending("10"))
    ends_at(notary, monkeypatch, step, lambda: notary.front.send(held)[0])
    is_held = notary.front.ask(GetHold(held.approval.approval_id)) is not None
    assert is_held == (step not in BEFORE)
    assert total(notary) == ("30" if is_held else "10")
    assert len(notary.front.ask(ReadHeldCaps(held.approval.approval_id))) == (2 if is_held else 0)


@AT_EACH_STEP
def test_the_amount_of_a_denied_hold_is_given_back_once_whenever_its_notary_ends(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    held = waiting("20", notary)
    for asked in (spending("10"), held, make_claim(held.approval, notary.front.front_id)):
        notary.front.ask(asked)
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(make_denial(held.approval))[0])
    is_denied = step not in BEFORE
    assert total(notary) == ("10" if is_denied else "30")
    again = notary.attach(name)
    again.resend({number: make_denial(held.approval)})
    again.answer(number)
    assert total(notary) == "10"


@AT_EACH_STEP
def test_the_amount_of_an_approved_call_counts_once_whenever_its_notary_ends(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    held = waiting("20", notary)
    for asked in (spending("10"), held, make_claim(held.approval, notary.front.front_id)):
        notary.front.ask(asked)
    opening = approved_of(held)
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(opening)[0])
    assert total(notary) == "30"
    again = notary.attach(name)
    again.resend({number: opening})
    assert isinstance(again.answer(number), Closed)
    assert total(notary) == "30"
    assert notary.front.ask(ReadHeldCaps(held.approval.approval_id)) == ()
