"""Hold: the proof, the debit, the hold and its event, all or nothing; the same call is held once."""

from typing import Any

import pytest

from ipc.operations.calls import ProofRecord, Refusal, UseProof
from ipc.operations.holds import GetHold, HoldInForce, ListHolds
from ipc.operations.leases import ReadBudget
from tests.notary.running import Running
from tests.notary.samples import NOW, answered, changed, make_approval, make_claim, make_hold, make_issue, make_revoke


def test_a_hold_is_stored_as_it_is_with_its_event_and_its_debit(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    approval = make_approval(session_id=session_id, body='{"é":"\\u0000","plan":{"principal":"uid:1000"}}')
    assert front.ask(make_hold(approval, has_budget=True)) == HoldInForce(answered(approval), is_repeated=False)
    assert front.ask(GetHold(approval.approval_id)) == approval
    assert front.ask(GetHold("apr_none")) is None
    assert front.ask(ReadBudget(session_id)).remaining == 1
    event = notary.last_event()
    assert (event["decision"], event["approval_id"], event.get("is_repeated")) == (
        "pending_approval", approval.approval_id, None,
    )  # fmt: skip
    assert (event["budgets_before"], event["budgets_after"]) == ({"calls_remaining": 2}, {"calls_remaining": 1})


def test_the_same_call_is_held_once_with_an_event_and_without_a_debit(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    first = make_approval(session_id=session_id, request_hash="r")
    again = make_approval(session_id=session_id, request_hash="r")
    front.ask(make_hold(first, has_budget=True))
    assert front.ask(make_hold(again, has_budget=True)) == HoldInForce(answered(first), is_repeated=True)
    assert front.ask(GetHold(again.approval_id)) is None
    assert front.ask(ReadBudget(session_id)).remaining == 1
    event = notary.last_event()
    assert (event["approval_id"], event["is_repeated"]) == (first.approval_id, True)


@pytest.mark.parametrize("change", [{"session_id": "ses_2"}, {"action_id": "other"}, {"request_hash": "r2"}])
def test_another_call_is_another_hold(notary: Running, change: dict[str, Any]) -> None:
    notary.front.ask(make_hold(make_approval(request_hash="r")))
    assert not notary.front.ask(make_hold(make_approval(**{"request_hash": "r"} | change))).is_repeated


def test_a_hold_that_is_over_or_decided_does_not_stand_for_a_new_one(notary: Running) -> None:
    front = notary.front
    front.ask(make_hold(make_approval(request_hash="r")))
    notary.clock.time = NOW + 299.9
    assert front.ask(make_hold(make_approval(request_hash="r"))).is_repeated
    notary.clock.time = NOW + 300
    second = make_approval(request_hash="r", expires_at=NOW + 600)
    assert not front.ask(make_hold(second)).is_repeated
    assert front.ask(make_claim(second)) is not None
    assert not front.ask(make_hold(make_approval(request_hash="r", expires_at=NOW + 600))).is_repeated


def test_a_session_has_a_bounded_number_of_holds_and_learns_when_one_ends(notary: Running) -> None:
    front = notary.front
    kept = [make_approval(expires_at=NOW + 300 + number) for number in range(3)]
    for approval in kept:
        assert isinstance(front.ask(make_hold(approval, limit=3)), HoldInForce)
    assert front.ask(make_hold(limit=3)) == Refusal(
        "too_many_pending_approvals", "3 holds of the session wait", retry_after=300
    )
    assert notary.last_event()["error_code"] == "too_many_pending_approvals"
    same = make_approval(request_hash=kept[1].request_hash)
    assert front.ask(make_hold(same, limit=3)).is_repeated
    assert isinstance(front.ask(make_hold(make_approval(session_id="ses_2"), limit=3)), HoldInForce)
    notary.clock.time = NOW + 300
    assert isinstance(front.ask(make_hold(make_approval(expires_at=NOW + 600), limit=3)), HoldInForce)


@pytest.mark.parametrize(
    ("spoil", "code"), [("proof", "replay_detected"), ("epoch", "invalid_lease"), ("budget", "budget_exhausted")]
)
def test_a_refused_hold_stores_nothing_and_has_one_event(notary: Running, spoil: str, code: str) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=int(spoil != "budget"))).session_id
    asked = make_hold(make_approval(session_id=session_id), has_budget=True, proof=ProofRecord("p"))
    if spoil == "proof":
        front.ask(UseProof(ProofRecord("p")))
    if spoil == "epoch":
        front.ask(make_revoke())
    before = len(notary.events())
    assert front.ask(asked).code == code
    assert front.ask(ListHolds(None, 9)).approvals == []
    assert len(notary.events()) == before + 1
    assert notary.last_event()["error_code"] == code
    assert front.ask(ReadBudget(session_id)).remaining == int(spoil != "budget")


def test_holds_of_one_call_at_the_same_time_are_one(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    session_id = notary.front.ask(make_issue(max_calls=9)).session_id
    asked = [
        (front, front.send(*[
            make_hold(make_approval(session_id=session_id, request_hash="r"), has_budget=True) for _ in range(10)
        ]))
        for front in fronts
    ]  # fmt: skip
    held = [front.answer(number) for front, numbers in asked for number in numbers]
    assert sorted(one.is_repeated for one in held) == [False, *[True] * 19]
    assert len({one.approval.approval_id for one in held}) == 1
    assert notary.front.ask(ReadBudget(session_id)).remaining == 8


def test_a_hold_without_a_proof_uses_none(notary: Running) -> None:
    assert isinstance(notary.front.ask(changed(make_hold(), proof=None)), HoldInForce)
    assert notary.stored("SELECT * FROM proofs") == []
