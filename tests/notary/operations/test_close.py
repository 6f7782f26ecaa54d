"""Close: receipt, event, resolution and the end of the approval at once, by any front, once."""

import json
from typing import Any

import pytest

from ipc.clock import iso
from ipc.messages import Approver, Close, GetHold, ReadLedger, Result, ShowReceipt, TraceOfApproval
from tests.notary.running import Running, walk
from tests.notary.samples import NOW, held_and_claimed, make_denial, make_open, make_result, record_call
from tests.support.asking import Asker, Told


def test_a_call_that_succeeded_has_a_receipt_and_an_event_that_name_each_other(notary: Running) -> None:
    asked, opened, closed = record_call(notary.front)
    event = notary.last_event()
    assert (closed.kind, closed.outcome, closed.verification_outcome, closed.reason) == (
        "success", "success", "verified", None,
    )  # fmt: skip
    assert {name: event[name] for name in ("decision", "receipt_id", "intent_id", "grant_id", "trace_id")} == {
        "decision": "allow", "receipt_id": closed.receipt_id, "intent_id": asked.intent_id,
        "grant_id": opened.grant_id, "trace_id": asked.event.trace_id,
    }  # fmt: skip
    shown = notary.front.ask(ShowReceipt(closed.receipt_id))
    receipt = json.loads(shown.receipt)
    assert (shown.signature_status, receipt["grant_id"]) == ("verified", opened.grant_id)
    assert (receipt["started_at"], receipt["finished_at"]) == (iso(NOW), iso(NOW))
    assert notary.front.ask(ReadLedger()).unresolved == 0
    assert notary.front.ask(ShowReceipt("rcpt_none")) is None


@pytest.mark.parametrize(
    ("end", "kind", "outcome"),
    [
        ({"result": make_result("fuel")}, "provider_failure", "fuel"),
        ({"result": make_result(output="[1]")}, "internal_error", "worker_lost"),
        ({"result": None, "lost": "channel closed"}, "internal_error", "worker_lost"),
        ({"result": None, "is_cut": True}, "cancelled", "cut"),
    ],
)
def test_a_call_that_failed_is_an_error_with_a_receipt_too(
    notary: Running, end: dict[str, Any], kind: str, outcome: str
) -> None:
    asked = make_open()
    notary.front.ask(asked)
    closed = notary.front.ask(Close(asked.intent_id, **end))
    assert (closed.kind, closed.outcome) == (kind, outcome)
    event = notary.last_event()
    assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
    assert json.loads(notary.front.ask(ShowReceipt(closed.receipt_id)).receipt)["normalized_result"]["kind"] == kind


def refused(front: Asker, intent_id: str, result: Result | None = None) -> None:
    with pytest.raises(Told) as told:
        front.ask(Close(intent_id, result or make_result()))
    assert told.value.problem == "refused"


def test_an_intent_is_closed_once_whoever_asks(notary: Running) -> None:
    asked, _, _ = record_call(notary.front)
    refused(notary.front, asked.intent_id)
    refused(notary.attach("another"), asked.intent_id)
    refused(notary.front, "intent_unknown")
    assert (len(notary.events()), len(notary.stored("SELECT 1 FROM receipts"))) == (1, 1)


def test_of_closes_in_one_unit_one_wins(notary: Running) -> None:
    asked = make_open()
    notary.front.ask(asked)
    numbers = notary.front.send(*[Close(asked.intent_id, make_result())] * 10)
    assert sorted(str(notary.front.heard(number).problem) for number in numbers) == ["None", *["refused"] * 9]
    assert len(notary.events()) == 1
    assert walk(notary.front).intact


def test_an_intent_can_be_opened_and_closed_within_one_unit(notary: Running) -> None:
    asked = make_open()
    for number in notary.front.send(asked, Close(asked.intent_id, make_result())):
        notary.front.answer(number)
    assert notary.front.ask(ReadLedger()).unresolved == 0


def test_a_notary_that_follows_closes_what_one_before_it_opened(notary: Running) -> None:
    asked = make_open()
    opened = notary.front.ask(asked)
    notary.restart()
    front = notary.attach("front-1")  # it lived on, and counts on
    front.resend({9: Close(asked.intent_id, make_result())})
    closed = front.answer(9)
    event = notary.last_event()
    assert (event["grant_id"], event["receipt_id"]) == (opened.grant_id, closed.receipt_id)
    assert event["trace_id"] == asked.event.trace_id


def test_an_approval_ends_with_its_call_in_the_same_unit(notary: Running) -> None:
    front = notary.front
    approval = held_and_claimed(front)
    asked = make_open(approver=Approver(approval.approval_id, "alice", "thumbprint", "jti"), proof=None)
    front.ask(asked)
    assert front.ask(TraceOfApproval(approval.approval_id)).has_intent
    closed = front.ask(Close(asked.intent_id, make_result()))
    ended = front.ask(GetHold(approval.approval_id))
    assert (ended.state, ended.holder) == ("approved", None)
    assert json.loads(ended.outcome) == {
        "claimed_by": "alice", "completed_at": iso(NOW), "receipt_id": closed.receipt_id,
    }  # fmt: skip


def test_an_approval_that_was_ended_by_somebody_else_stays_as_it_is(notary: Running) -> None:
    front = notary.front
    approval = held_and_claimed(front)
    asked = make_open(approver=Approver(approval.approval_id, "alice", "thumbprint", "jti"), proof=None)
    front.ask(asked)
    assert front.ask(make_denial(approval)).state == "denied"
    front.ask(Close(asked.intent_id, make_result()))
    assert front.ask(GetHold(approval.approval_id)).state == "denied"
