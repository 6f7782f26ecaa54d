"""UseProof and Refuse: a proof is used once, and one that was used wins over every other refusal."""

import pytest

from ipc.operations.calls import Entered, ProofRecord, Refusal, Refuse, UseProof, WrittenRefusal
from notary.ledger.settling import settle_all
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.store.proofs import REPLAY_SECONDS, USABLE_SECONDS
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task
from tests.notary.running import Running
from tests.notary.samples import NOW, answered, call_event, make_approval, make_hold, make_open, make_revoke


def test_a_proof_is_fresh_once_and_another_one_is_another(notary: Running) -> None:
    front = notary.front
    assert front.ask(UseProof(ProofRecord("p", NOW))) == Entered(is_fresh=True, epoch=0)
    assert front.ask(UseProof(ProofRecord("p", NOW))) == Entered(is_fresh=False, epoch=0)
    assert front.ask(UseProof(ProofRecord("q", NOW))).is_fresh


def test_a_proof_is_fresh_once_however_late_it_is_shown_again(notary: Running) -> None:
    """A front that hung after it checked a copy asks long after the proof's window."""
    front, began = notary.front, notary.clock.time
    assert front.ask(UseProof(ProofRecord("p", began + 5))).is_fresh
    for later in (1, 59, 61, 121, USABLE_SECONDS, USABLE_SECONDS + 6, REPLAY_SECONDS, REPLAY_SECONDS + 1, 86_400):
        notary.clock.time = began + later
        assert not front.ask(UseProof(ProofRecord("p", began + 5))).is_fresh, later


def test_a_proof_that_waited_is_fresh_while_it_would_be_remembered_and_is_a_replay_after_that(notary: Running) -> None:
    front, began = notary.front, notary.clock.time
    notary.clock.time = began + USABLE_SECONDS
    assert front.ask(UseProof(ProofRecord("waited", began))).is_fresh
    notary.clock.time += 0.001
    assert not front.ask(UseProof(ProofRecord("too long", began))).is_fresh
    assert front.ask(make_open(proof=ProofRecord("a call", began))) == Refusal("replay_detected")
    assert front.ask(Refuse(call_event(**DENIED), ProofRecord("refused", began))).is_replay


def test_a_proof_stays_used_for_the_notary_that_follows(notary: Running) -> None:
    notary.front.ask(UseProof(ProofRecord("p", NOW)))
    assert not notary.restart().ask(UseProof(ProofRecord("p", NOW))).is_fresh


@pytest.mark.parametrize("is_undone", [True, False])
@pytest.mark.parametrize("is_settled", [True, False])
def test_a_proof_stays_used_after_a_unit_that_failed(notary: Running, is_settled: bool, is_undone: bool) -> None:
    notary.stop()
    state, _ = open_state(notary.settings, notary.clock, limits=notary.limits)
    runner, used = TransactionRunner(state, PERFORMERS), UseProof(ProofRecord("p", NOW))
    assert runner.perform([Task("front", 1, used)])[0].value.is_fresh
    assert state.unsettled is not None
    if is_settled:
        settle_all(state.database, state.unsettled)
    state.forget(is_undone=is_undone)
    again = runner.perform([Task("front", 2, used)])[0]
    state.database.close()
    assert not again.value.is_fresh


def test_a_proof_sent_many_times_at_once_is_fresh_once(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    numbers = [(front, number) for front in fronts for number in front.send(*[UseProof(ProofRecord("p", NOW))] * 50)]
    assert sum(front.answer(number).is_fresh for front, number in numbers) == 1


def test_a_visit_tells_the_epoch_in_force_and_writes_no_event(notary: Running) -> None:
    notary.front.ask(make_revoke())
    assert notary.front.ask(UseProof(ProofRecord("p", NOW))).epoch == 1
    assert len(notary.events()) == 1


DENIED = {"decision": "deny", "error_code": "policy_denied", "reason": "no", "deny_reason": "not you"}


def test_a_refusal_is_its_event_and_uses_the_proof(notary: Running) -> None:
    assert notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW))) == WrittenRefusal()
    event = notary.last_event()
    assert {name: event[name] for name in DENIED} == DENIED
    assert not notary.front.ask(UseProof(ProofRecord("p", NOW))).is_fresh


def test_a_proof_that_was_used_turns_any_refusal_into_a_replay(notary: Running) -> None:
    notary.front.ask(UseProof(ProofRecord("p", NOW)))
    assert notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p", NOW))) == WrittenRefusal(is_replay=True)
    event = notary.last_event()
    assert (event["decision"], event["error_code"]) == ("deny", "replay_detected")
    assert {"reason", "deny_reason"}.isdisjoint(event)


def test_the_same_call_that_waits_is_answered_with_its_hold(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    event = call_event(request_hash=approval.request_hash, decision="deny", error_code="budget_exhausted", reason="x")
    assert notary.front.ask(Refuse(event, ProofRecord("p", NOW), unless_held=True)) == WrittenRefusal(
        held=answered(approval)
    )
    told = notary.last_event()
    assert (told["decision"], told["approval_id"], told["is_repeated"]) == (
        "pending_approval", approval.approval_id, True,
    )  # fmt: skip
    assert {"reason", "error_code"}.isdisjoint(told)
    assert notary.front.ask(Refuse(event, ProofRecord("p", NOW), unless_held=True)) == WrittenRefusal(is_replay=True)


def test_another_call_or_one_whose_hold_is_over_is_refused(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    event = call_event(request_hash=approval.request_hash, **DENIED)
    for other in (
        {"request_hash": "sha256:other"}, {"session_id": "ses_2"}, {"action_id": "other"},
    ):  # fmt: skip
        asked = call_event(**{"request_hash": approval.request_hash} | DENIED | other)
        assert notary.front.ask(Refuse(asked, unless_held=True)) == WrittenRefusal()
    notary.clock.time = approval.expires_at
    assert notary.front.ask(Refuse(event, unless_held=True)) == WrittenRefusal()
    assert notary.last_event()["error_code"] == "policy_denied"
