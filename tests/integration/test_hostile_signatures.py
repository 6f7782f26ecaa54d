"""A front that was taken over, against a real notary that takes no decision without the operator's own signature.

It can't make up an operator's approval: not without a signature, not with that of another, of another plan, of another
time, or of another decision. A refused message writes nothing, runs nothing, and stands in the log.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.approvals import DecisionOutcome, HeldBody
from ipc.backends.store import ApprovalRecord
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.evidence.events import AuditEvent
from ipc.keys.shown import hash_of, shown
from ipc.operations.calls import Approver, Open, Refusal, Refuse
from ipc.operations.evidence import ShowReceipt, WriteEvent
from ipc.operations.holds import GetHold, HoldInForce, MoveHold
from ipc.plan import seal
from ipc.reloadable import reloadable_of
from ipc.settings import ApprovalSettings, OperatorSettings
from tests.support.hostile_front import (
    DIGEST,
    a_hold,
    an_open,
    assert_refused,
    call_event,
    events,
    granted,
    now_of,
    opened,
    terms,
    with_budget,
)
from tests.support.plans import a_plan
from tests.support.played_supervisor_of_notary import (
    PlayedFront,
    PlayedSupervisor,
    sound_notary,
)
from tests.support.played_workers import sound_result
from tests.support.proofs import Key
from tests.support.signed_approvals import signature_of, tampered

ANN, MALLORY = Key(), Key()
OPERATORS = (
    OperatorSettings("ann", dpop_jkt=ANN.jkt, api_key_sha256="a" * 64),
    OperatorSettings("mallory", dpop_jkt=MALLORY.jkt, api_key_sha256="b" * 64),
    OperatorSettings("nobody", api_key_sha256="c" * 64),
)
REQUIRED = ApprovalSettings(require_signature=True)
MOMENT = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[PlayedSupervisor]:
    """A notary that requires signatures."""
    with sound_notary(tmp_path, operators=OPERATORS, approvals=REQUIRED) as running:
        yield running


@pytest.fixture(scope="module")
def shared_notary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedSupervisor]:
    """A notary that requires signatures and never gets a true one."""
    with sound_notary(tmp_path_factory.mktemp("notary"), operators=OPERATORS, approvals=REQUIRED) as running:
        yield running


@pytest.fixture
def lenient(tmp_path: Path) -> Iterator[PlayedSupervisor]:
    """A notary that requires none."""
    with sound_notary(tmp_path, operators=OPERATORS) as running:
        yield running


def held(front: PlayedFront, request: str = '{"text":"x"}') -> dict[str, Any]:
    """A hold that waits; what an operator is shown of it, with the hash of that and the notary's time as `now`."""
    session_id, now = with_budget(front, 1), now_of(front)
    asked = a_hold(session_id=session_id)
    plan = a_plan(
        session_id=session_id, action_id="text_digest", request_hash=DIGEST, request=request,
        principal=asked.approval.principal,
    )  # fmt: skip
    body = HeldBody.of(seal(plan), IdentityOrigin("none"), has_budget=True)
    approval = msgspec.structs.replace(
        asked.approval, created_at=now, expires_at=now + 300, body=msgspec.json.encode(body).decode()
    )
    assert isinstance(
        front.value(msgspec.structs.replace(asked, approval=approval), HoldInForce | Refusal), HoldInForce
    )
    members = shown(approval, body)
    return members | {"shown_hash": hash_of(members), "now": int(now)}


def signed(detail: dict[str, Any], key: Key = ANN, header: dict[str, Any] | None = None, **claims: Any) -> str:
    return signature_of(key, detail, header, **({"iat": detail["now"]} | claims))


def a_claim(
    front: PlayedFront, detail: dict[str, Any], signature: str | None, *, by: str = "ann", with_event: bool = True,
    **of_event: Any,
) -> MoveHold:  # fmt: skip
    """A claim that lets the call run, or one that has no event yet."""
    fields: dict[str, Any] = {
        "approved_by": by, "operator_sender_binding": ANN.jkt, "operator_proof_jti": "jti",
        "approval_signature": signature,
    }  # fmt: skip
    event = granted(detail["approval_id"], **fields | of_event) if with_event else None
    outcome = msgspec.json.encode(DecisionOutcome(by, MOMENT, approval_signature=signature)).decode()
    return MoveHold(detail["approval_id"], "pending", "claimed", outcome, front.front_id, event)


def a_denial(detail: dict[str, Any], signature: str | None, reason: str | None = None, **of_event: Any) -> MoveHold:
    fields: dict[str, Any] = {
        "event_type": "ApprovalDenied", "decision": "deny", "approved_by": "ann", "deny_reason": reason,
        "approval_signature": signature,
    }  # fmt: skip
    outcome = DecisionOutcome("ann", MOMENT, deny_reason=reason, approval_signature=signature)
    return MoveHold(
        detail["approval_id"], "claimed", "denied", msgspec.json.encode(outcome).decode(),
        event=granted(detail["approval_id"], **fields | of_event),
    )  # fmt: skip


def an_approved_call(detail: dict[str, Any], **of_approver: Any) -> Open:
    fields: dict[str, Any] = {
        "approval_id": detail["approval_id"], "approved_by": "ann", "operator_jkt": ANN.jkt,
        "operator_proof_jti": "jti",
    }  # fmt: skip
    return an_open(approver=Approver(**fields | of_approver), terms=terms(plan_hash=detail["plan_hash"]))


def state_of(front: PlayedFront, detail: dict[str, Any]) -> str:
    record: ApprovalRecord = front.value(GetHold(detail["approval_id"]), ApprovalRecord)
    return record.state


FALSE: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "none": lambda _: None,
    "empty": lambda _: "",
    "noise": lambda _: "a.b.c",
    "by another operator": lambda detail: signed(detail, MALLORY),
    "by another with the key of the operator in its header": lambda detail: signed(detail, MALLORY, {"jwk": ANN.jwk}),
    "of another plan": lambda detail: signed(detail, plan_hash=DIGEST),
    "of another approval": lambda detail: signed(detail, approval_id="apr_1"),
    "of another action": lambda detail: signed(detail, action_id="another"),
    "of what was not shown": lambda detail: signed(detail, shown_hash=DIGEST),
    "for another gateway": lambda detail: signed(detail, aud="http://elsewhere.test"),
    "in another name": lambda detail: signed(detail, operator="mallory"),
    "too old": lambda detail: signed(detail, iat=detail["now"] - 100),
    "of the future": lambda detail: signed(detail, iat=detail["now"] + 600),
    "of a denial": lambda detail: signed(detail, decision="deny"),
    "of a denial turned into an approval": lambda detail: tampered(signed(detail, decision="deny"), decision="approve"),
    "of an old one made young": lambda detail: tampered(signed(detail, iat=detail["now"] - 100), iat=detail["now"]),
    "of a proof": lambda detail: signed(detail, header={"typ": "dpop+jwt"}),
    "without an algorithm": lambda detail: signed(detail, header={"alg": "none"}),
    "with a claim that nobody knows": lambda detail: signed(detail, may="anything"),
    "too long": lambda detail: signed(detail, reason="x" * 10_000),
}


@pytest.mark.parametrize("false", FALSE.values(), ids=FALSE)
def test_no_front_says_that_an_operator_approved_who_has_not_signed_it(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, false: Callable[[dict[str, Any]], str | None]
) -> None:
    detail = held(new_front)
    assert_refused(
        shared_notary, new_front, a_claim(new_front, detail, false(detail)), an_approved_call(detail), an_open(
            terms=terms(plan_hash=detail["plan_hash"]), event=call_event(approval_id=detail["approval_id"])
        ),
    )  # fmt: skip
    assert state_of(new_front, detail) == "pending"
    assert events(new_front, event_type="ApprovalGranted") == []


def test_a_signature_counts_for_its_own_operator_alone(shared_notary: PlayedSupervisor, new_front: PlayedFront) -> None:
    detail = held(new_front)
    signature = signed(detail)
    assert_refused(
        shared_notary, new_front, a_claim(new_front, detail, signature, by="mallory"),
        a_claim(new_front, detail, signature, by="eve"), a_claim(new_front, detail, signature, approved_by="mallory"),
        a_claim(new_front, detail, signature, operator_sender_binding=MALLORY.jkt),
        a_claim(new_front, detail, signature, approval_signature=None),
        a_claim(new_front, detail, signature, approval_signature=signed(detail)),
        a_claim(new_front, detail, signature, reason="learns domain evil.example"),
        a_claim(new_front, detail, None, with_event=False),
    )  # fmt: skip


def test_a_signature_of_an_operator_that_a_reload_removed_counts_no_more_and_that_of_a_new_one_does(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    detail, eve = held(front), Key()
    others = (OPERATORS[1], OperatorSettings("eve", dpop_jkt=eve.jkt, api_key_sha256="d" * 64))
    supervisor.follow(msgspec.structs.replace(reloadable_of(supervisor.settings), operators=others))
    assert_refused(supervisor, front, a_claim(front, detail, signed(detail)))
    assert events(front, event_type="ApprovalGranted") == []
    eves = a_claim(front, detail, signed(detail, eve), by="eve", operator_sender_binding=eve.jkt)
    assert front.value(eves, ApprovalRecord).state == "claimed"


def test_an_approval_with_its_signature_runs_once_and_its_receipt_has_the_signature(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    detail = held(front)
    signature = signed(detail)
    assert front.value(a_claim(front, detail, signature), ApprovalRecord).state == "claimed"
    assert_refused(
        supervisor, front, an_approved_call(detail, operator_jkt=MALLORY.jkt),
        an_approved_call(detail, signature=signature), an_approved_call(detail, approved_by="mallory"),
    )  # fmt: skip
    asked = an_approved_call(detail)
    front.begin(asked)
    closed = front.end(asked, sound_result())
    told = front.value(ShowReceipt(closed.receipt_id))
    approval = msgspec.json.decode(told["receipt"])["approval"]
    assert (approval["signature"], approval["operator_jkt"]) == (signature, ANN.jkt)
    (event,) = events(front, event_type="ApprovalGranted")
    assert event["approval_signature"] == signature


def test_a_denial_is_never_an_approval_nor_one_a_denial(supervisor: PlayedSupervisor, front: PlayedFront) -> None:
    denied, approved = held(front), held(front, '{"text":"y"}')
    no, yes = signed(denied, decision="deny", reason="too \u202emuch"), signed(approved)
    assert front.value(a_claim(front, denied, no, with_event=False), ApprovalRecord).state == "claimed"
    assert front.value(a_claim(front, approved, yes, with_event=False), ApprovalRecord).state == "claimed"
    assert_refused(
        supervisor, front, an_approved_call(denied), a_denial(approved, yes), a_denial(denied, no, "another reason"),
        a_denial(denied, no, None), a_denial(denied, None, "too much"), a_denial(denied, yes, "too much"),
        a_denial(denied, no, "too much", approved_by="mallory"),
        a_denial(denied, no, "too much", approval_signature=None),
        a_denial(denied, signed(denied, decision="deny", reason="too much"), "too much"),
    )  # fmt: skip
    assert front.value(a_denial(denied, no, "too much"), ApprovalRecord).state == "denied"
    (event,) = events(front, event_type="ApprovalDenied")
    assert (event["approval_signature"], event["deny_reason"]) == (no, "too much")


def test_a_front_that_stored_a_false_plan_gets_no_signature_counted_for_it(
    shared_notary: PlayedSupervisor, new_front: PlayedFront
) -> None:
    session_id, now = with_budget(new_front, 1), now_of(new_front)
    asked = a_hold(session_id=session_id)
    who = asked.approval.principal
    plan = a_plan(session_id=session_id, action_id="text_digest", request_hash=DIGEST, principal=who)
    body = msgspec.structs.replace(HeldBody.of(seal(plan), IdentityOrigin("none"), has_budget=True), plan_hash=DIGEST)
    # The operator sees and signs the hash of another plan.
    approval = msgspec.structs.replace(
        asked.approval, created_at=now, expires_at=now + 300, body=msgspec.json.encode(body).decode()
    )
    new_front.value(msgspec.structs.replace(asked, approval=approval))
    members = shown(approval, body)
    detail = members | {"shown_hash": hash_of(members), "now": int(now)}
    assert_refused(shared_notary, new_front, a_claim(new_front, detail, signed(detail)))


def test_no_other_event_tells_a_signature(shared_notary: PlayedSupervisor, new_front: PlayedFront) -> None:
    event = AuditEvent(event_type="AdminDrain", trace_id="trc_1", decision="allow", approval_signature="a.b.c")
    assert_refused(
        shared_notary, new_front, WriteEvent(event), an_open(event=call_event(approval_signature="a.b.c")),
        Refuse(call_event(decision="deny", error_code="policy_denied", approval_signature="a.b.c")),
    )  # fmt: skip


def test_where_none_is_required_a_decision_goes_without_and_a_false_one_is_refused_all_the_same(
    lenient: PlayedSupervisor,
) -> None:
    front = lenient.attach("front-1-a")
    unsigned, false = held(front), held(front, '{"text":"y"}')
    assert_refused(lenient, front, a_claim(front, false, signed(false, MALLORY)))
    assert front.value(a_claim(front, unsigned, None), ApprovalRecord).state == "claimed"
    assert_refused(lenient, front, an_approved_call(unsigned, signature=signed(unsigned)))
    opened(front, approver=an_approved_call(unsigned).approver, terms=terms(plan_hash=unsigned["plan_hash"]))


def test_an_operator_without_a_key_of_their_own_signs_with_that_of_their_proof(lenient: PlayedSupervisor) -> None:
    front = lenient.attach("front-1-a")
    detail = held(front)
    signature = signed(detail, MALLORY)
    assert_refused(lenient, front, a_claim(front, detail, signature, by="nobody"))
    claim = a_claim(front, detail, signature, by="nobody", operator_sender_binding=MALLORY.jkt)
    assert front.value(claim, ApprovalRecord).state == "claimed"
