"""Refuse: one event and the proof; a proof that was used wins over everything else."""

from ipc.operations.calls import ProofRecord, Refuse, UseProof, WrittenRefusal
from tests.notary.running import Running
from tests.notary.samples import answered, call_event, make_approval, make_hold

DENIED = {"decision": "deny", "error_code": "policy_denied", "reason": "no", "deny_reason": "not you"}


def test_a_refusal_is_its_event_and_uses_the_proof(notary: Running) -> None:
    assert notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p"))) == WrittenRefusal()
    event = notary.last_event()
    assert {name: event[name] for name in DENIED} == DENIED
    assert not notary.front.ask(UseProof(ProofRecord("p"))).is_fresh


def test_a_refusal_without_a_proof_is_its_event_alone(notary: Running) -> None:
    assert notary.front.ask(Refuse(call_event(**DENIED))) == WrittenRefusal()
    assert notary.stored("SELECT * FROM proofs") == []


def test_a_proof_that_was_used_turns_any_refusal_into_a_replay(notary: Running) -> None:
    notary.front.ask(UseProof(ProofRecord("p")))
    assert notary.front.ask(Refuse(call_event(**DENIED), ProofRecord("p"))) == WrittenRefusal(is_replay=True)
    event = notary.last_event()
    assert (event["decision"], event["error_code"]) == ("deny", "replay_detected")
    assert {"reason", "deny_reason"}.isdisjoint(event)


def test_the_same_call_that_waits_is_answered_with_its_hold(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    event = call_event(request_hash=approval.request_hash, decision="deny", error_code="budget_exhausted", reason="x")
    assert notary.front.ask(Refuse(event, ProofRecord("p"), unless_held=True)) == WrittenRefusal(
        held=answered(approval)
    )
    told = notary.last_event()
    assert (told["decision"], told["approval_id"], told["is_repeated"]) == (
        "pending_approval", approval.approval_id, True,
    )  # fmt: skip
    assert {"reason", "error_code"}.isdisjoint(told)
    assert notary.front.ask(Refuse(event, ProofRecord("p"), unless_held=True)) == WrittenRefusal(is_replay=True)


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
