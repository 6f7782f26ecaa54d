"""Operators' own signatures, as the notary holds them against claims, denials and approved calls from any front."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ipc.approvals import DecisionOutcome, HeldBody
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.keys.shown import hash_of, shown
from ipc.operations.calls import Approver, Open
from ipc.operations.evidence import ShowReceipt
from ipc.operations.holds import GetHold, MoveHold
from ipc.plan import seal
from ipc.settings import ApprovalSettings, OperatorSettings
from notary.operations import signed as module
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import NOW, call_event, changed, make_approval, make_hold, make_open
from tests.support.asking import Told
from tests.support.plans import a_plan
from tests.support.proofs import Key
from tests.support.signed_approvals import signature_of, tampered

ANN, MALLORY = Key(), Key()
OPERATORS = (
    OperatorSettings("ann", dpop_jkt=ANN.jkt, api_key_sha256="a" * 64),
    OperatorSettings("mallory", dpop_jkt=MALLORY.jkt, api_key_sha256="b" * 64),
    OperatorSettings("keyless", api_key_sha256="c" * 64),
)
OLDEST = NOW - 90.0
"""A proof is good for 60 seconds; the notary gives a front that looked before it 30 more."""

Detail = dict[str, Any]


@pytest.fixture
def strict(start_notary: StartNotary) -> Running:
    """A notary that takes no decision without a signature."""
    return start_notary("strict", operators=OPERATORS, approvals=ApprovalSettings(require_signature=True))


@pytest.fixture
def lenient(start_notary: StartNotary) -> Running:
    """A notary that accepts unsigned decisions, too."""
    return start_notary("lenient", operators=OPERATORS)


def held(notary: Running, *, body: Callable[[HeldBody], HeldBody] = lambda body: body, **of_plan: Any) -> Detail:
    """A hold that waits, as an operator is shown it."""
    approval = make_approval()
    plan = a_plan(action_id=approval.action_id, principal=approval.principal, request='{"text":"x"}', **of_plan)
    kept = body(HeldBody.of(seal(plan), IdentityOrigin("none"), has_budget=False))
    approval = changed(approval, body=msgspec.json.encode(kept).decode())
    notary.front.ask(make_hold(approval))
    members = shown(approval, kept)
    return members | {"shown_hash": hash_of(members)}


def signed(detail: Detail, key: Key = ANN, **claims: Any) -> str:
    given: dict[str, Any] = {"aud": "http://localhost", "iat": NOW} | claims
    return signature_of(key, detail, **given)


def claim(detail: Detail, signature: str | None, by: str = "ann", **of_event: Any) -> MoveHold:
    """A claim that lets the call run; `event=None`: one that does not say yet what it comes to."""
    fields: dict[str, Any] = {
        "event_type": "ApprovalGranted", "decision": "allow", "approval_id": detail["approval_id"], "approved_by": by,
        "operator_sender_binding": ANN.jkt, "operator_proof_jti": "jti", "approval_signature": signature,
    }  # fmt: skip
    event = None if of_event == {"event": None} else call_event(**fields | of_event)
    outcome = msgspec.json.encode(DecisionOutcome(by, approval_signature=signature)).decode()
    return MoveHold(detail["approval_id"], "pending", "claimed", outcome, "front-1", event)


def denial(
    detail: Detail, signature: str | None, reason: str | None = None, kept: str | None = None, **of_event: Any
) -> MoveHold:
    """`kept` is what the outcome has for a reason, where that is another one than the event's."""
    fields: dict[str, Any] = {
        "event_type": "ApprovalDenied", "decision": "deny", "approval_id": detail["approval_id"], "approved_by": "ann",
        "deny_reason": reason, "approval_signature": signature,
    }  # fmt: skip
    outcome = DecisionOutcome("ann", deny_reason=kept or reason, approval_signature=signature)
    text = msgspec.json.encode(outcome).decode()
    return MoveHold(detail["approval_id"], "claimed", "denied", text, event=call_event(**fields | of_event))


def approved_call(detail: Detail, jkt: str = ANN.jkt, signature: str | None = None) -> Open:
    approver = Approver(detail["approval_id"], "ann", jkt, "jti", signature)
    return make_open(approver=approver, proof=None, terms={"plan_hash": detail["plan_hash"]})


def refusal(notary: Running, operation: Any) -> str:
    with pytest.raises(Told) as told:
        notary.front.ask(operation)
    assert told.value.problem == "refused", told.value
    return told.value.cause or ""


def state_of(notary: Running, detail: Detail) -> str:
    return str(notary.front.ask(GetHold(detail["approval_id"])).state)


FALSE: dict[str, Callable[[Detail], str | None]] = {
    "none": lambda _: None,
    "empty": lambda _: "",
    "noise": lambda _: "a.b.c",
    "by another key": lambda detail: signed(detail, MALLORY),
    "by another key under the operator's": lambda detail: signed(detail, MALLORY, header={"jwk": ANN.jwk}),
    "of another plan": lambda detail: signed(detail, plan_hash="sha256:other"),
    "of another approval": lambda detail: signed(detail, approval_id="apr_other"),
    "of another action": lambda detail: signed(detail, action_id="other"),
    "of what was not shown": lambda detail: signed(detail, shown_hash="sha256:other"),
    "for another gateway": lambda detail: signed(detail, aud="http://elsewhere.test"),
    "in another name": lambda detail: signed(detail, operator="mallory"),
    "too old": lambda detail: signed(detail, iat=OLDEST - 0.5),
    "of the future": lambda detail: signed(detail, iat=NOW + 600),
    "of a denial": lambda detail: signed(detail, decision="deny"),
    "of a denial, turned": lambda detail: tampered(signed(detail, decision="deny"), decision="approve"),
    "of a rule that is not learned": lambda detail: signed(detail, learn_domain="good.example"),
    "of a path that is not learned": lambda detail: signed(detail, learn_path="/x"),
}


def test_the_shown_hash_is_recorded_only_under_an_operators_signature(
    strict: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail = held(strict)
    hashed: list[Detail] = []

    def noted(members: Detail) -> str | None:
        hashed.append(members)
        return hash_of(members)

    monkeypatch.setattr(module, "hash_of", noted)
    assert "does not hold" in refusal(strict, claim(detail, signed(detail, MALLORY)))
    assert hashed == []
    strict.front.ask(claim(detail, signed(detail)))
    assert state_of(strict, detail) == "claimed"
    assert len(hashed) == 1


def test_a_false_signature_claims_nothing(strict: Running) -> None:
    detail = held(strict)
    for name, false in FALSE.items():
        refusal(strict, claim(detail, false(detail)))
        assert state_of(strict, detail) == "pending", name
    assert strict.front.ask(claim(detail, signed(detail))).state == "claimed"


def test_a_signature_that_was_young_when_a_front_looked_still_claims(strict: Running) -> None:
    detail = held(strict)
    assert strict.front.ask(claim(detail, signed(detail, iat=OLDEST))).state == "claimed"


def test_a_signature_counts_for_its_own_operator_and_its_own_event(strict: Running) -> None:
    detail = held(strict)
    signature = signed(detail)
    for false in (
        claim(detail, signature, "mallory"), claim(detail, signature, "eve"),
        claim(detail, signature, approved_by="mallory"), claim(detail, signature, operator_sender_binding=MALLORY.jkt),
        claim(detail, signature, approval_signature=None), claim(detail, signature, approval_signature="a.b.c"),
        claim(detail, signature, reason="learns domain evil.example"), claim(detail, None, event=None),
        claim(detail, signed(detail, MALLORY), event=None),
    ):  # fmt: skip
        refusal(strict, false)
    assert state_of(strict, detail) == "pending"


@pytest.mark.parametrize("rule", [{"learn_domain": "new.example"}, {"learn_path": "/new"}])
def test_an_approval_learns_what_its_operator_has_signed(strict: Running, rule: dict[str, Any]) -> None:
    detail = held(strict)
    signature = signed(detail, **rule)
    refusal(strict, claim(detail, signature))
    assert strict.front.ask(claim(detail, signature, reason="learns it")).state == "claimed"


def test_a_signature_for_an_unreadable_or_mismatched_plan_is_refused(strict: Running) -> None:
    false = held(strict, body=lambda body: changed(body, plan_hash="sha256:other"))
    assert "a plan that is not whole" in refusal(strict, claim(false, signed(false)))
    detail = held(strict, request_hash="sha256:other")
    strict.execute("UPDATE approvals SET body = '{\"plan\":1}' WHERE approval_id = ?", detail["approval_id"])
    assert "can't be read" in refusal(strict, claim(detail, signed(detail)))


def test_an_operator_without_a_key_of_their_own_signs_with_any(lenient: Running) -> None:
    detail = held(lenient)
    signature = signed(detail, MALLORY)
    refusal(lenient, claim(detail, signature, "keyless"))
    claimed = lenient.front.ask(claim(detail, signature, "keyless", operator_sender_binding=MALLORY.jkt))
    assert claimed.state == "claimed"


def test_an_approved_call_runs_by_the_key_that_has_signed_and_its_receipt_has_the_signature(strict: Running) -> None:
    detail = held(strict)
    signature = signed(detail)
    strict.front.ask(claim(detail, signature))
    refusal(strict, approved_call(detail, MALLORY.jkt))
    refusal(strict, approved_call(detail, signature=signature))
    closed = strict.front.ask(approved_call(detail))
    shown_receipt = strict.front.ask(ShowReceipt(closed.receipt_id))
    assert msgspec.json.decode(shown_receipt.receipt)["approval"]["signature"] == signature
    (granted,) = [event for event in strict.events() if event["event_type"] == "ApprovalGranted"]
    assert granted["approval_signature"] == signature


def test_a_signature_of_a_denial_is_no_approval_and_keeps_its_reason(strict: Running) -> None:
    denied, approved = held(strict), held(strict)
    no, yes = signed(denied, decision="deny", reason="too \u202emuch"), signed(approved)
    strict.front.ask(claim(denied, no, event=None))
    strict.front.ask(claim(approved, yes, event=None))
    for false in (
        approved_call(denied), denial(approved, yes), denial(denied, no, "another reason"), denial(denied, no),
        denial(denied, no, "too much", kept="another reason"), denial(denied, None, "too much"),
        denial(denied, no, "too much", approved_by="mallory"), denial(denied, no, "too much", approval_signature=None),
        denial(denied, signed(denied, decision="deny", reason="too much"), "too much"),
    ):  # fmt: skip
        refusal(strict, false)
    assert strict.front.ask(denial(denied, no, "too much")).state == "denied"


def test_a_denial_without_a_reason_is_recorded_without_one(strict: Running) -> None:
    detail = held(strict)
    no = signed(detail, decision="deny")
    strict.front.ask(claim(detail, no, event=None))
    refusal(strict, denial(detail, no, "a reason"))
    assert strict.front.ask(denial(detail, no)).state == "denied"


def test_where_none_is_required_decisions_go_without_and_a_false_one_counts_for_nothing(lenient: Running) -> None:
    detail, denied = held(lenient), held(lenient)
    refusal(lenient, claim(detail, signed(detail, MALLORY)))
    assert lenient.front.ask(claim(detail, None)).state == "claimed"
    assert lenient.front.ask(claim(denied, None, event=None)).state == "claimed"
    refusal(lenient, approved_call(detail, signature=signed(detail)))
    assert lenient.front.ask(approved_call(detail)).kind == "success"
    assert lenient.front.ask(denial(denied, None, "no")).state == "denied"


def test_an_unsigned_claim_is_neither_approved_nor_denied_once_signatures_are_required(lenient: Running) -> None:
    approved, denied = held(lenient), held(lenient)
    for detail in (approved, denied):
        lenient.front.ask(claim(detail, None, event=None))
    lenient.stop()
    lenient.settings = changed(lenient.settings, approvals=ApprovalSettings(require_signature=True))
    lenient.start()
    front = lenient.attach("front-1")  # it lived on
    for asked in (approved_call(approved), denial(denied, None, "no")):
        with pytest.raises(Told, match="without the operator's signature"):
            front.ask(asked)
    assert state_of(lenient, denied) == "claimed"
