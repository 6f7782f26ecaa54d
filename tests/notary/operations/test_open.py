"""Open: proof, epoch, debit, intent and grant, all or nothing; and each way in which it is refused."""

import re
from typing import Any

import jwt
import pytest

from ipc.operations.calls import Approver, Closed, NoSuchWorker, Open, ProofRecord, Refusal, UseProof
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadBudget
from ipc.process.clock import iso
from tests.notary.running import Running
from tests.notary.samples import DIGEST, NOW, call_event, held_and_claimed, make_issue, make_open, make_revoke
from tests.support.asking import Asker, Told

APPROVER = Approver("apr_1", "alice", "thumbprint", "jti-1")


def session(front: Asker, calls: int) -> str:
    """A lease with a budget."""
    return str(front.ask(make_issue(max_calls=calls)).session_id)


def budgeted(session_id: str, **given: Any) -> Open:
    return make_open(event=call_event(session_id=session_id), has_budget=True, **given)


def left(front: Asker, session_id: str) -> int:
    return int(front.ask(ReadBudget(session_id)).remaining)


def grant(notary: Running) -> tuple[str, str]:
    """The id and the token of the only grant."""
    (row,) = notary.stored("SELECT grant_id, grant_jws FROM intents")
    return row[0], row[1]


def test_an_open_writes_the_intent_and_signs_a_grant_for_this_very_plan(notary: Running) -> None:
    asked = make_open(terms={"plan_hash": "sha256:plan"})
    notary.front.begin(asked)
    grant_id, token = grant(notary)
    key = jwt.PyJWK(notary.thread.state.signers.grants.jwk)
    claims = jwt.decode(token, key, ["ES256"], options={"verify_exp": False, "verify_iat": False})
    assert (claims["grant_id"], claims["plan_hash"], claims["epoch"]) == (grant_id, "sha256:plan", 0)
    assert re.fullmatch(r"grant_[0-9a-f-]{36}", grant_id)
    assert claims["trace_id"] == asked.event.trace_id
    assert notary.stored("SELECT intent_id, plan_hash, dispatched_at FROM intents") == [
        (asked.intent_id, "sha256:plan", iso(NOW))
    ]
    (view,) = notary.front.ask(ListUnresolved(5))
    assert (view.intent_id, view.trace_id, view.provider_module) == (asked.intent_id, asked.event.trace_id, DIGEST)
    assert notary.events() == [], "the event is that of the end"


def test_a_proof_that_was_used_refuses_with_an_event_and_touches_nothing_else(notary: Running) -> None:
    front = notary.front
    session_id = session(front, 2)
    front.ask(UseProof(ProofRecord("p", NOW)))
    assert front.ask(budgeted(session_id, proof=ProofRecord("p", NOW))) == Refusal("replay_detected")
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
    refusal = front.ask(make_open(proof=ProofRecord("p", NOW), approver=approver))
    assert (refusal.code, refusal.cause) == (code, "epoch 0 of the call, 1 is in force")
    assert notary.last_event()["error_code"] == code
    assert not front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert isinstance(front.ask(make_open(epoch=1)), Closed)


def test_an_epoch_to_come_is_refused_too(notary: Running) -> None:
    assert notary.front.ask(make_open(epoch=1)).code == "invalid_lease"


def test_a_budget_is_debited_to_nothing_and_no_further(notary: Running) -> None:
    front = notary.front
    session_id = session(front, 2)
    counts = []
    for _ in range(2):
        front.ask(budgeted(session_id))
        event = notary.last_event()
        counts.append((event["budgets_before"]["calls_remaining"], event["budgets_after"]["calls_remaining"]))
    assert counts == [(2, 1), (1, 0)]
    assert front.ask(budgeted(session_id)) == Refusal("budget_exhausted")
    event = notary.last_event()
    assert (event["error_code"], event["budgets_before"]) == ("budget_exhausted", {"calls_remaining": 0})
    assert (left(front, session_id), len(notary.stored("SELECT 1 FROM intents"))) == (0, 2)


def test_a_session_without_a_budget_is_not_found(notary: Running) -> None:
    assert notary.front.ask(budgeted("ses_unknown")) == Refusal("budget_session_not_found")
    assert notary.last_event()["error_code"] == "budget_session_not_found"


def test_simultaneous_calls_from_two_fronts_run_exactly_as_often_as_the_budget_allows(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    session_id = session(notary.front, 25)
    asked = [(front, front.send(*[budgeted(session_id) for _ in range(30)])) for front in fronts]
    answers = [front.answer(number) for front, numbers in asked for number in numbers]
    assert len([one for one in answers if isinstance(one, Closed)]) == 25
    executed = [event for event in notary.events() if "receipt_id" in event]
    assert sorted(event["budgets_after"]["calls_remaining"] for event in executed) == list(range(25))
    assert [one.code for one in answers if isinstance(one, Refusal)] == ["budget_exhausted"] * 35
    assert len(notary.stored("SELECT 1 FROM intents")) == 25


def test_a_call_that_was_held_is_not_debited_again_and_binds_its_operator(notary: Running) -> None:
    session_id = session(notary.front, 1)
    held_and_claimed(notary.front, approval_id="apr_1", session_id=session_id)
    notary.front.ask(budgeted(session_id, approver=APPROVER, proof=None))
    assert ("budgets_after" in notary.last_event(), left(notary.front, session_id)) == (False, 1)
    claims = jwt.decode(grant(notary)[1], options={"verify_signature": False})
    assert claims["approval"] == {
        "approval_id": "apr_1", "approved_by": "alice", "operator_jkt": "thumbprint", "operator_proof_jti": "jti-1",
    }  # fmt: skip
    assert notary.stored("SELECT approval_id FROM intents") == ["apr_1"]


def test_an_intent_is_one_whatever_the_order_of_ids_and_whichever_notary_is_asked(notary: Running) -> None:
    used = ["m", "z", "a"]

    def asked(letter: str) -> Open:
        return make_open(intent_id=f"intent_{letter * 36}")

    for letter in used:
        notary.front.ask(asked(letter))
    for is_restarted in (False, False, True):
        front = notary.restart() if is_restarted else notary.front
        for letter in used:
            with pytest.raises(Told, match="the id of another intent"):
                front.ask(asked(letter))
        front.ask(ListUnresolved(5))  # from now on every intent is in its table
    notary.front.ask(asked("n"))
    assert len(notary.stored("SELECT 1 FROM intents")) == 4


def test_a_missing_worker_is_reported_and_nothing_is_used_or_written(notary: Running) -> None:
    front = notary.front
    session_id = session(front, 2)
    gone = notary.workers.start("front-1")
    notary.workers.end(gone)
    for worker_id in (gone.worker_id, "worker-of-nobody"):
        assert front.ask(budgeted(session_id, proof=ProofRecord("p", NOW), worker_id=worker_id)) == NoSuchWorker()
    assert (left(front, session_id), notary.stored("SELECT * FROM intents")) == (2, [])
    assert front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
