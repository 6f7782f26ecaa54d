"""Receipts of calls that ran by a standing approval, as a ledger is verified."""

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from notary.ledger.receipts import LedgerReceipt
from notary.reading.standing import problem_of_standing
from tests.notary.conftest import StartNotary
from tests.notary.operations.test_standing import ANN as OPERATOR
from tests.notary.operations.test_standing import OPERATORS, add, adding, opening, rewrite
from tests.notary.running import walk
from tests.notary.samples import ATTESTED, NOW, make_receipt
from tests.support.proofs import Key
from tests.support.signed_approvals import tampered
from tests.support.standing_approvals import signed_standing

ANN = Key()
FOREIGN = ["http://localhost", "other.example"]
ID = "sta_019a9a3b-0000-7000-8000-000000000000"


def receipt_of(text: str | None = None, standing_id: str = ID, **terms: Any) -> LedgerReceipt:
    """The receipt of a call that began at NOW, with such a standing approval."""
    text = signed_standing(ANN, now=NOW - 60, **{"standing_id": ID} | terms) if text is None else text
    return make_receipt(attested=replace(ATTESTED, standing_id=standing_id, standing_signature=text))


def test_a_ledger_whose_calls_ran_by_a_standing_approval_is_whole(start_notary: StartNotary) -> None:
    notary = start_notary(operators=OPERATORS)
    notary.front.ask(opening(add(notary)))
    report = walk(notary.front)
    assert (report.intact, report.events_checked) == (True, 2)


def test_a_ledger_with_a_call_by_a_standing_approval_of_another_ledger_is_not_whole(
    start_notary: StartNotary, monkeypatch: pytest.MonkeyPatch
) -> None:
    notary = start_notary(operators=OPERATORS)
    row = notary.front.ask(adding(signed_standing(OPERATOR, now=NOW))).row
    rewrite(
        notary, replace(row, signature=signed_standing(OPERATOR, now=NOW, standing_id=row.standing_id, aud=FOREIGN))
    )
    monkeypatch.setattr("notary.operations.standing.check_ledger", lambda *_: None)
    notary.front.ask(opening(row.standing_id))
    notary.stop()
    report = walk(notary.front)
    assert (report.intact, report.reason) == (False, "its receipt has a standing approval of another ledger")


def test_a_ledger_that_got_another_name_later_is_whole(start_notary: StartNotary) -> None:
    notary = start_notary(operators=OPERATORS)
    notary.front.ask(opening(add(notary)))
    notary.settings = replace(notary.settings, evidence=replace(notary.settings.evidence, origin="new.example"))
    notary.restart()
    notary.front.ask(opening(add(notary, aud=["http://localhost", "new.example"])))
    notary.stop()
    with notary.stranger() as ledger:
        assert ledger.execute("DELETE FROM checkpoints WHERE note NOT LIKE 'new.example%'").rowcount > 0
    assert walk(notary.front).intact


def test_a_receipt_holds_with_the_text_that_was_signed_for_its_call() -> None:
    assert problem_of_standing(receipt_of(), ID) is None
    assert problem_of_standing(make_receipt(), None) is None


SPOILT: dict[str, tuple[dict[str, Any], str]] = {
    "another id": ({"standing_id": ID[:-1] + "1", "text": signed_standing(ANN, standing_id=ID, now=NOW)}, "its event"),
    "another action": ({"action_id": "other"}, "other calls"),
    "another principal": ({"principal": "uid:1"}, "other calls"),
    "a time that was over": ({"until": int(NOW)}, "time was over"),
    "a changed text": ({"text": tampered(signed_standing(ANN, standing_id=ID, now=NOW), max_calls=9)}, "no key"),
    "a text of another type": ({"text": signed_standing(ANN, {"typ": "approval+jws"}, standing_id=ID)}, "no key"),
    "no text": ({"text": ""}, "no key"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_receipt_does_not_hold_with(spoilt: str) -> None:
    given, words = SPOILT[spoilt]
    problem = problem_of_standing(receipt_of(**given), ID)
    assert problem is not None
    assert words in problem


def test_a_receipt_does_not_hold_with_the_name_alone_or_the_signature_alone() -> None:
    assert "no key" in (problem_of_standing(replace(receipt_of(), standing_signature=UNSET), ID) or "")
    assert "other calls" in (problem_of_standing(replace(receipt_of(), standing_id=UNSET), None) or "")


def test_a_receipt_that_names_none_does_not_hold_beside_an_event_that_does() -> None:
    assert "its event" in (problem_of_standing(make_receipt(), ID) or "")
    assert "its event" in (problem_of_standing(receipt_of(), None) or "")
