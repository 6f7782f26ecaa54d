"""Standing approvals at the notary: what they lift, how they are counted, how they end, and what it refuses."""

from typing import Any

import msgspec
import pytest

from ipc.caps import CapUse
from ipc.operations.calls import Approver, CallKey, Closed, HeldByCap, Open, Refusal, RepeatedCall, Withdraw, Withdrawn
from ipc.operations.evidence import ShowReceipt
from ipc.operations.holds import Hold, HoldInForce
from ipc.operations.standing import (
    AddStanding,
    FindStanding,
    Lifted,
    ListStanding,
    RevokeStanding,
    StandingInForce,
    StandingRow,
    StandingUse,
)
from ipc.settings import OperatorSettings
from ipc.texts.canonical import canonical_bytes
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import NOW, call_event, make_approval, make_hold, make_open, make_revoke
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.proofs import Key
from tests.support.signed_approvals import tampered
from tests.support.standing_approvals import signed_standing

ANN, MALLORY = Key(), Key()
OPERATORS = (
    OperatorSettings("ann", dpop_jkt=ANN.jkt, api_key_sha256="a" * 64),
    OperatorSettings("reader", dpop_jkt=ANN.jkt, api_key_sha256="b" * 64, roles=("read",)),
    OperatorSettings("mallory", dpop_jkt=MALLORY.jkt, api_key_sha256="c" * 64, owner="mallory@example"),
)


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary with operators."""
    return start_notary(operators=OPERATORS)


def adding(signature: str, operator: str = "ann", key: Key = ANN, **of_event: Any) -> AddStanding:
    fields = {"principal": f"operator:{operator}", "operator_sender_binding": key.jkt, "decision": "allow"}
    event = call_event(event_type="StandingApprovalAdded", **fields | of_event)
    return AddStanding(signature, operator, event)


def add(notary: Running, **terms: Any) -> str:
    """The id of a standing approval by ann that is in force."""
    added = notary.front.ask(adding(signed_standing(ANN, now=NOW, **terms)))
    assert isinstance(added, StandingInForce), added
    return added.row.standing_id


def holding(values: dict[str, Any] | None = None, **given: Any) -> Hold:
    approval = make_approval()
    told = msgspec.json.encode(canonical_bytes(values or {}).decode()).decode()
    owner = msgspec.json.encode(given.pop("owner", None)).decode()
    body = approval.body.replace('"plan":{', f'"plan":{{"owner":{owner},"policy_input":{told},')
    return make_hold(msgspec.structs.replace(approval, body=body), **{"may_be_lifted": True} | given)


def opening(standing_id: str, values: dict[str, Any] | None = None, **given: Any) -> Open:
    return make_open(standing=StandingUse(standing_id, canonical_bytes(values or {}).decode()), **given)


def rewrite(notary: Running, row: StandingRow) -> None:
    """Put it in the place of the one that is stored."""
    notary.stop()
    notary.execute("UPDATE standing_approvals SET record = ?", msgspec.json.encode(row).decode())
    notary.start()


def calls(notary: Running) -> list[int]:
    return [one.calls for one in notary.front.ask(ListStanding())]


def test_a_call_that_is_covered_is_not_held_and_its_evidence_names_the_standing_approval(notary: Running) -> None:
    signature = signed_standing(ANN, now=NOW, max_calls=2)
    row = notary.front.ask(adding(signature)).row
    event = notary.last_event()
    assert (event["event_type"], event["standing_id"]) == ("StandingApprovalAdded", row.standing_id)
    assert (event["action_id"], event["approved_by"], event["standing_signature"]) == ("text_digest", "ann", signature)
    assert event["change"] == {"principal": "uid:1000", "until": int(NOW) + 3600, "max_calls": 2}
    assert notary.front.ask(holding()) == Lifted(row.standing_id)
    closed = notary.front.ask(opening(row.standing_id))
    assert isinstance(closed, Closed)
    assert notary.last_event()["standing_id"] == row.standing_id
    assert "standing_signature" not in notary.last_event()
    receipt = msgspec.json.decode(notary.front.ask(ShowReceipt(closed.receipt_id)).receipt)
    assert (receipt["standing_id"], receipt["standing_signature"]) == (row.standing_id, signature)
    assert calls(notary) == [1]


def test_a_call_is_counted_with_its_intent_and_the_last_one_is_the_last(notary: Running) -> None:
    standing_id = add(notary, max_calls=2)
    ends = [notary.front.ask(opening(standing_id)) for _ in range(3)]
    assert [type(end) for end in ends] == [Closed, Closed, HeldByCap]
    assert isinstance(notary.front.ask(holding()), HoldInForce)
    assert calls(notary) == [2]


def test_a_call_that_is_withdrawn_before_it_runs_counts_no_more(notary: Running) -> None:
    standing_id = add(notary, max_calls=1)
    asked = opening(standing_id)
    notary.front.begin(asked)
    assert calls(notary) == [1]
    assert notary.front.ask(Withdraw(asked.intent_id, "error", "overloaded")) == Withdrawn(is_abandoned=True)
    assert calls(notary) == [0]
    assert isinstance(notary.front.ask(opening(standing_id)), Closed)


@pytest.mark.parametrize(
    "given", [{"action_id": "another"}, {"principal": "uid:1"}], ids=["of another action", "of another principal"]
)
def test_it_covers_its_own_action_and_principal_alone(notary: Running, given: dict[str, str]) -> None:
    standing_id = add(notary, **given)
    assert isinstance(notary.front.ask(holding()), HoldInForce)
    assert isinstance(notary.front.ask(opening(standing_id)), HeldByCap)


def test_a_call_must_keep_every_condition(notary: Running) -> None:
    amount = {"pointer": "/amount", "op": "<=", "value": 100}
    currency = {"pointer": "/currency", "op": "==", "value": "EUR"}
    standing_id = add(notary, where=[currency, amount])
    values = {"/amount": 100, "/currency": "EUR"}
    assert notary.front.ask(holding(values)) == Lifted(standing_id)
    assert isinstance(notary.front.ask(opening(standing_id, values)), Closed)
    for other in ({**values, "/amount": 100.01}, {**values, "/currency": "USD"}, {"/currency": "EUR"}, {}):
        assert isinstance(notary.front.ask(holding(other)), HoldInForce)
        assert isinstance(notary.front.ask(opening(standing_id, other)), HeldByCap)


def test_of_several_that_cover_a_call_the_one_that_ends_first_serves_while_it_has_calls(notary: Running) -> None:
    late = add(notary)
    early = add(notary, until=int(NOW) + 600, max_calls=1)
    assert notary.front.ask(holding()) == Lifted(early)
    notary.front.ask(opening(early))
    assert notary.front.ask(holding()) == Lifted(late)
    assert notary.front.ask(FindStanding("text_digest", "uid:1000", None, "{}")) == late


def test_it_lifts_the_holds_of_caps_and_not_their_denials_whose_events_do_not_name_it(notary: Running) -> None:
    standing_id = add(notary)
    cap = CapUse("/amount", "all", "", 3600, "60", hold_above="50", deny_above="100")
    assert isinstance(notary.front.ask(opening(standing_id, caps=(cap,))), Closed)
    denied = notary.front.ask(opening(standing_id, caps=(cap,)))
    assert isinstance(denied, Refusal)
    assert denied.code == "policy_denied"
    assert calls(notary) == [1], "a denied call counts for no standing approval"
    assert "standing_id" not in notary.last_event()


def test_a_call_that_waits_already_goes_on_waiting(notary: Running) -> None:
    asked = holding(may_be_lifted=False)
    notary.front.ask(asked)
    add(notary)
    again = msgspec.structs.replace(holding(), event=asked.event)
    request = {"request_hash": asked.approval.request_hash}
    again = msgspec.structs.replace(again, approval=msgspec.structs.replace(again.approval, **request))
    assert notary.front.ask(again).approval.approval_id == asked.approval.approval_id


def test_a_hold_that_needs_several_operators_is_not_lifted(notary: Running) -> None:
    add(notary)
    asked = holding()
    body = asked.approval.body.replace('{"plan_hash"', '{"quorum":{"count":2,"groups":{}},"plan_hash"', 1)
    event = msgspec.structs.replace(asked.event, quorum={"count": 2, "groups": {}})
    approval = msgspec.structs.replace(asked.approval, body=body)
    asked = msgspec.structs.replace(asked, approval=approval, event=event)
    assert isinstance(notary.front.ask(asked), HoldInForce)


def test_one_whose_owner_is_the_callers_does_not_serve(notary: Running) -> None:
    signature = signed_standing(MALLORY, now=NOW, operator="mallory")
    standing_id = notary.front.ask(adding(signature, "mallory", MALLORY)).row.standing_id
    own = call_event(owner="mallory@example")
    assert isinstance(notary.front.ask(opening(standing_id, event=own)), HeldByCap)
    assert isinstance(notary.front.ask(opening(standing_id, event=call_event(owner="other@example"))), Closed)
    assert notary.front.ask(FindStanding("text_digest", "uid:1000", "mallory@example", "{}")) is None


def test_a_revoked_one_serves_no_call_and_the_same_text_is_not_added_again(notary: Running) -> None:
    signature = signed_standing(ANN, now=NOW)
    standing_id = notary.front.ask(adding(signature)).row.standing_id
    notary.front.ask(opening(standing_id))
    event = call_event(event_type="StandingApprovalRevoked", decision="allow")
    assert notary.front.ask(RevokeStanding(standing_id, event)).row.standing_id == standing_id
    last = notary.last_event()
    assert (last["event_type"], last["standing_id"], last["change"]["calls"]) == (
        "StandingApprovalRevoked", standing_id, 1,
    )  # fmt: skip
    assert calls(notary) == []
    assert isinstance(notary.front.ask(opening(standing_id)), HeldByCap)
    assert notary.front.ask(RevokeStanding(standing_id, event)) is None
    assert notary.front.ask(adding(signature)) is None


def test_revoking_everything_ends_each_with_an_event(notary: Running) -> None:
    standing_id = add(notary)
    notary.front.ask(make_revoke())
    last = notary.last_event()
    assert (last["event_type"], last["standing_id"], last["reason"]) == (
        "StandingApprovalEnded", standing_id, "everything of before was revoked",
    )  # fmt: skip
    assert calls(notary) == []
    assert isinstance(notary.front.ask(opening(standing_id, epoch=1)), HeldByCap)


def test_its_time_ends_it_with_one_event_and_its_row_goes(notary: Running) -> None:
    standing_id = add(notary, until=int(NOW) + 60)
    notary.clock.time = NOW + 59.9
    assert isinstance(notary.front.ask(opening(standing_id)), Closed)
    notary.clock.time = NOW + 60
    assert isinstance(notary.front.ask(opening(standing_id)), HeldByCap)
    assert calls(notary) == []
    wait_for(lambda: notary.stored("SELECT 1 FROM standing_approvals") == [], "the end of a standing approval")
    last = notary.last_event()
    assert (last["event_type"], last["reason"]) == ("StandingApprovalEnded", "its time is over")


SPOILT: dict[str, tuple[dict[str, Any], str]] = {
    "for another gateway": ({"aud": ["http://other.example", "localhost"]}, "aud"),
    "for another ledger": ({"aud": ["http://localhost", "other.example"]}, "aud"),
    "of another operator": ({"operator": "mallory"}, "dpop_jkt"),
    "of an operator who may not approve": ({"operator": "reader"}, "may not approve"),
    "old": ({"iat": NOW - 91}, "iat"),
    "too short": ({"until": int(NOW) + 20}, "until"),
    "too long": ({"until": int(NOW) + 30 * 86400 + 60}, "until"),
    "with no call": ({"max_calls": 0}, "max_calls"),
    "with another claim": ({"extra": 1}, "claims"),
    "with another id": ({"standing_id": "sta_1"}, "standing_id"),
}


def test_the_notary_adds_none_that_is_not_signed_for_here_and_now(notary: Running) -> None:
    for terms, problem in SPOILT.values():
        with pytest.raises(Told, match=problem):
            notary.front.ask(adding(signed_standing(ANN, now=NOW, **terms), operator=terms.get("operator", "ann")))
    assert calls(notary) == []


def test_the_notary_adds_none_whose_text_was_changed_or_that_another_has_sent(notary: Running) -> None:
    good = signed_standing(ANN, now=NOW, max_calls=1)
    for asked in (
        adding(tampered(good, max_calls=1000)), adding(good, "mallory", MALLORY), adding(good, key=MALLORY),
        adding(good, principal="operator:mallory"), adding(signed_standing(ANN, {"typ": "approval+jws"}, now=NOW)),
    ):  # fmt: skip
        with pytest.raises(Told):
            notary.front.ask(asked)
    assert calls(notary) == []


def test_a_row_whose_text_its_operator_did_not_sign_serves_no_call(notary: Running) -> None:
    good = signed_standing(ANN, now=NOW, max_calls=1)
    row = notary.front.ask(adding(good)).row
    rewrite(notary, msgspec.structs.replace(row, signature=tampered(good, max_calls=1000)))
    assert isinstance(notary.front.ask(opening(row.standing_id)), HeldByCap)
    assert isinstance(notary.front.ask(holding()), HoldInForce)
    assert notary.front.ask(ListStanding()) == ()


def test_a_row_whose_text_can_not_be_read_hides_no_other_one(notary: Running) -> None:
    row = notary.front.ask(adding(signed_standing(ANN, now=NOW))).row
    rewrite(notary, msgspec.structs.replace(row, signature="a.b.c"))
    standing_id = add(notary)
    assert [one.row.standing_id for one in notary.front.ask(ListStanding())] == [standing_id]


def test_one_of_an_epoch_that_is_over_ends_as_revoked(notary: Running) -> None:
    add(notary, until=int(NOW) + 60)
    notary.stop()
    notary.execute("UPDATE epochs SET epoch = epoch + 1")
    notary.start()
    assert calls(notary) == []
    notary.clock.time = NOW + 60
    wait_for(lambda: notary.stored("SELECT 1 FROM standing_approvals") == [], "the end of a standing approval")
    assert notary.last_event()["reason"] == "everything of before was revoked"


@pytest.mark.parametrize("aud", [["http://localhost", "other.example"], ["http://other.example", "localhost"]])
def test_a_row_that_was_signed_for_another_ledger_or_gateway_serves_no_call(notary: Running, aud: list[str]) -> None:
    row = notary.front.ask(adding(signed_standing(ANN, now=NOW))).row
    foreign = signed_standing(ANN, now=NOW, standing_id=row.standing_id, aud=aud)
    rewrite(notary, msgspec.structs.replace(row, signature=foreign))
    assert isinstance(notary.front.ask(opening(row.standing_id)), HeldByCap)
    assert isinstance(notary.front.ask(holding()), HoldInForce)
    assert notary.front.ask(FindStanding("text_digest", "uid:1000", None, "{}")) is None


def test_one_of_an_operator_who_is_gone_serves_no_call(notary: Running) -> None:
    standing_id = add(notary)
    notary.settings = msgspec.structs.replace(notary.settings, operators=OPERATORS[1:])
    notary.restart()
    assert isinstance(notary.front.ask(opening(standing_id)), HeldByCap)


def test_a_front_can_name_no_standing_approval_in_an_event_or_beside_an_approver(notary: Running) -> None:
    standing_id = add(notary)
    approver = Approver("apr_1", "ann", ANN.jkt, "jti")
    for asked in (make_open(event=call_event(standing_id=standing_id)), opening(standing_id, approver=approver)):
        with pytest.raises(Told):
            notary.front.ask(asked)


def test_a_call_made_again_under_its_key_counts_once_and_its_event_names_no_standing_approval(notary: Running) -> None:
    standing_id = add(notary)
    event, key = call_event(), CallKey("k")
    first = notary.front.ask(opening(standing_id, event=event, idempotency=key))
    again = notary.front.ask(opening(standing_id, event=event, idempotency=key))
    assert isinstance(first, Closed)
    assert isinstance(again, RepeatedCall)
    assert calls(notary) == [1]
    assert "standing_id" not in notary.last_event()
