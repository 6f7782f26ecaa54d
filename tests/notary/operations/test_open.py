"""Open: proof, epoch, debit, intent and grant, all or nothing; and each way in which it is refused."""

from typing import Any

import jwt
import pytest

from ipc.clock import iso
from ipc.messages import Approver, Enter, ListUnresolved, Open, Opened, Proof, ReadBudget, Refusal
from tests.notary.running import Running, walk
from tests.notary.samples import DIGEST, NOW, call_event, changed, held_and_claimed, make_issue, make_open, make_revoke
from tests.support.asking import Asker, Told

APPROVER = Approver("apr_1", "alice", "thumbprint", "jti-1")


def session(front: Asker, calls: int) -> str:
    """A lease with a budget."""
    return str(front.ask(make_issue(max_calls=calls)).session_id)


def budgeted(session_id: str, **given: Any) -> Open:
    return make_open(event=call_event(session_id=session_id), has_budget=True, **given)


def left(front: Asker, session_id: str) -> int:
    return int(front.ask(ReadBudget(session_id)).remaining)


def test_an_open_writes_the_intent_and_signs_a_grant_for_this_very_plan(notary: Running) -> None:
    asked = make_open(terms={"plan_hash": "sha256:plan"})
    opened = notary.front.ask(asked)
    assert (opened.started_at, opened.calls_before, opened.calls_after) == (iso(NOW), None, None)
    key = jwt.PyJWKSet.from_json(notary.front.in_force[-1].grant_jwks)[jwt.get_unverified_header(opened.grant)["kid"]]
    claims = jwt.decode(opened.grant, key, ["ES256"], options={"verify_exp": False, "verify_iat": False})
    assert (claims["grant_id"], claims["plan_hash"], claims["epoch"]) == (opened.grant_id, "sha256:plan", 0)
    assert notary.stored("SELECT intent_id, grant_id, plan_hash, grant_jws FROM intents") == [
        (asked.intent_id, opened.grant_id, "sha256:plan", opened.grant)
    ]
    (view,) = notary.front.ask(ListUnresolved(5))
    assert (view.intent_id, view.trace_id, view.provider_module) == (asked.intent_id, asked.event.trace_id, DIGEST)
    assert notary.events() == [], "the event is that of the end"


def test_a_proof_that_was_used_refuses_with_an_event_and_touches_nothing_else(notary: Running) -> None:
    front = notary.front
    session_id = session(front, 2)
    front.ask(Enter(Proof("p")))
    assert front.ask(budgeted(session_id, proof=Proof("p"))) == Refusal("replay_detected")
    assert left(front, session_id) == 2
    assert notary.stored("SELECT * FROM intents") == []
    event = notary.last_event()
    assert (event["decision"], event["error_code"]) == ("deny", "replay_detected")


@pytest.mark.parametrize(("approver", "code"), [(None, "invalid_lease"), (APPROVER, "plan_integrity")])
def test_an_epoch_that_is_over_refuses_and_the_proof_is_used_all_the_same(
    notary: Running, approver: Approver | None, code: str
) -> None:
    front = notary.front
    if approver is not None:
        held_and_claimed(front, approval_id=approver.approval_id)
    front.ask(make_revoke())
    refusal = front.ask(make_open(proof=Proof("p"), approver=approver))
    assert (refusal.code, refusal.cause) == (code, "epoch 0 of the call, 1 is in force")
    assert notary.last_event()["error_code"] == code
    assert not front.ask(Enter(Proof("p"))).is_fresh
    assert isinstance(front.ask(make_open(epoch=1)), Opened)


def test_an_epoch_to_come_is_refused_too(notary: Running) -> None:
    assert notary.front.ask(make_open(epoch=1)).code == "invalid_lease"


def test_a_budget_is_debited_to_nothing_and_no_further(notary: Running) -> None:
    front = notary.front
    session_id = session(front, 2)
    counts = []
    for _ in range(2):
        opened = front.ask(budgeted(session_id))
        counts.append((opened.calls_before, opened.calls_after))
    assert counts == [(2, 1), (1, 0)]
    assert front.ask(budgeted(session_id)) == Refusal("budget_exhausted")
    assert notary.last_event()["error_code"] == "budget_exhausted"
    assert (left(front, session_id), len(notary.stored("SELECT 1 FROM intents"))) == (0, 2)


def test_a_session_without_a_budget_is_not_found(notary: Running) -> None:
    assert notary.front.ask(budgeted("ses_unknown")) == Refusal("budget_session_not_found")
    assert notary.last_event()["error_code"] == "budget_session_not_found"


def test_of_many_calls_at_once_from_two_fronts_exactly_as_many_run_as_the_budget_has(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    session_id = session(notary.front, 25)
    asked = [(front, front.send(*[budgeted(session_id) for _ in range(30)])) for front in fronts]
    answers = [front.answer(number) for front, numbers in asked for number in numbers]
    assert sorted(one.calls_after or 0 for one in answers if isinstance(one, Opened)) == list(range(25))
    assert [one.code for one in answers if isinstance(one, Refusal)] == ["budget_exhausted"] * 35
    assert len(notary.stored("SELECT 1 FROM intents")) == 25


def test_a_call_that_was_held_is_not_debited_again_and_binds_its_operator(notary: Running) -> None:
    session_id = session(notary.front, 1)
    held_and_claimed(notary.front, approval_id="apr_1", session_id=session_id)
    opened = notary.front.ask(budgeted(session_id, approver=APPROVER, proof=None))
    assert (opened.calls_before, left(notary.front, session_id)) == (None, 1)
    claims = jwt.decode(opened.grant, options={"verify_signature": False})
    assert claims["approval"] == {
        "approval_id": "apr_1", "approved_by": "alice", "operator_jkt": "thumbprint", "operator_proof_jti": "jti-1",
    }  # fmt: skip
    assert notary.stored("SELECT approval_id FROM intents") == ["apr_1"]


def test_the_same_intent_twice_is_one_intent(notary: Running) -> None:
    asked = make_open()
    notary.front.ask(asked)
    with pytest.raises(Told):
        notary.front.ask(changed(asked, proof=Proof("another proof")))
    assert len(notary.stored("SELECT 1 FROM intents")) == 1
    assert notary.front.ask(Enter(Proof("another proof"))).is_fresh, "what fails uses no proof"
    assert walk(notary.front).intact


def test_an_event_without_canonical_form_is_refused_alone(notary: Running) -> None:
    front = notary.front
    front.ask(Enter(Proof("p")))
    bad = make_open(proof=Proof("p"), event=call_event(budgets_before={"n": 2**60}))
    good = [make_open() for _ in range(5)]
    numbers = front.send(*good[:3], bad, *good[3:])
    told = [front.heard(number) for number in numbers]
    assert [one.problem for one in told] == [None, None, None, "refused", None, None]
    assert [one.intent_id for one in front.ask(ListUnresolved(9))] == [one.intent_id for one in good]
