"""A notary that ends at each step of a unit that changes Redis and ledger: both have it afterwards, or neither."""

import re
from pathlib import Path

import pytest

from ipc.operations.holds import GetHold, Hold
from tests.notary.backends import order
from tests.notary.backends.order import CALLS, Step, changed_proof, end_of, ended, ends_at, left
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_approval, make_hold, make_issue, make_note
from tests.support.asking import Told

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]
DECISIONS = Path(__file__).resolve().parents[4] / "docs" / "decisions" / "backends.md"


def budgeted_hold(notary: Running) -> Hold:
    """Debits a budget, counts a call and stores an approval, all in one unit that is answered at once."""
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    return make_hold(make_approval(session_id=session_id), has_budget=True, calls_per_hour=1)


def check_agreement(notary: Running, asked: Hold, *, is_there: bool, others: int = 0) -> None:
    """Redis and ledger both have the unit, or neither."""
    hold = notary.front.ask(GetHold(asked.approval.approval_id))
    assert (hold is not None) == is_there
    assert left(notary, asked.approval.session_id) == CALLS - is_there
    report = walk_of(notary)
    assert (report.intact, report.total_events) == (True, 1 + is_there + others), report.reason


@pytest.mark.parametrize("step", order.NOT_DONE, ids=lambda step: step.__name__)
def test_a_unit_that_ends_here_is_in_neither(notary: Running, step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = budgeted_hold(notary)
    with monkeypatch.context() as patch:
        step(notary, patch)
        end_of(notary, asked)
    ended(notary)
    check_agreement(notary, asked, is_there=False)
    assert not notary.front.ask(changed_proof(asked)).is_repeated
    check_agreement(notary, asked, is_there=True)


@pytest.mark.parametrize("step", order.DONE, ids=lambda step: step.__name__)
def test_a_unit_that_ends_here_is_in_both_and_is_answered_again(
    notary: Running, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = budgeted_hold(notary)
    before, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(asked)[0])
    check_agreement(notary, asked, is_there=True)
    again = notary.asked_again(before, {number: asked})
    assert again.answer(number).approval.approval_id == asked.approval.approval_id
    check_agreement(notary, asked, is_there=True)


def test_a_unit_in_doubt_is_in_neither_when_the_ledger_went_on_and_the_notary_ended(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = budgeted_hold(notary)
    with monkeypatch.context() as patch:
        order.doubted(notary, patch)
        with pytest.raises(Told, match="unavailable"):
            notary.front.ask(asked)
        end_of(notary, make_note())
    ended(notary)
    check_agreement(notary, asked, is_there=False, others=1)


def test_a_unit_that_was_undone_by_one_that_ended_is_undone_once(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = budgeted_hold(notary)
    with monkeypatch.context() as patch:
        order.recovered(notary, patch)
        end_of(notary, asked)
    ended(notary)
    check_agreement(notary, asked, is_there=False)


def test_every_step_of_the_table_is_one_of_these_and_the_other_way_round() -> None:
    text = DECISIONS.read_text().split("## The order of Redis and ledger\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert named == [step.__name__ for step in (*order.NOT_DONE, *order.DONE, *order.IN_DOUBT)]
