"""The end of a call: receipt, event, resolution and the end of the approval at once, as its worker tells it, once."""

import json
from typing import Any

import pytest

from ipc.operations.calls import Closed
from ipc.operations.evidence import ShowReceipt
from ipc.operations.holds import GetHold
from ipc.operations.status import ReadLedger
from ipc.process.clock import iso
from tests.notary.running import Running, walk
from tests.notary.samples import (
    NOW,
    call,
    held_and_claimed,
    make_approved,
    make_denial,
    make_open,
    make_result,
    record_call,
)
from tests.support.asking import Told


def test_a_call_that_succeeded_has_a_receipt_and_an_event_that_name_each_other(notary: Running) -> None:
    asked, closed = record_call(notary.front)
    event = notary.last_event()
    assert (closed.kind, closed.outcome, closed.verification_outcome, closed.reason) == (
        "success", "success", "verified", None,
    )  # fmt: skip
    assert notary.stored("SELECT grant_id FROM intents") == [closed.grant_id]
    assert {name: event[name] for name in ("decision", "receipt_id", "intent_id", "grant_id", "trace_id")} == {
        "decision": "allow", "receipt_id": closed.receipt_id, "intent_id": asked.intent_id,
        "grant_id": closed.grant_id, "trace_id": asked.event.trace_id,
    }  # fmt: skip
    shown = notary.front.ask(ShowReceipt(closed.receipt_id))
    receipt = json.loads(shown.receipt)
    assert (shown.signature_status, receipt["grant_id"]) == ("verified", closed.grant_id)
    assert (receipt["started_at"], receipt["finished_at"]) == (iso(NOW), iso(NOW))
    assert notary.front.ask(ReadLedger()).unresolved == 0
    assert notary.front.ask(ShowReceipt("rcpt_none")) is None


def failed_with_a_receipt(notary: Running, closed: Closed, kind: str, outcome: str) -> None:
    assert (closed.kind, closed.outcome) == (kind, outcome)
    event = notary.last_event()
    assert (event["decision"], event["error_code"]) == ("error", "action_execution_failed")
    assert json.loads(notary.front.ask(ShowReceipt(closed.receipt_id)).receipt)["normalized_result"]["kind"] == kind


@pytest.mark.parametrize(
    ("result", "kind", "outcome"),
    [
        (make_result("fuel"), "provider_failure", "fuel"),
        (make_result(output="[1]"), "internal_error", "worker_lost"),
        (make_result("plan_refused"), "internal_error", "plan_refused"),
    ],
)
def test_a_call_that_failed_is_an_error_with_a_receipt_too(
    notary: Running, result: Any, kind: str, outcome: str
) -> None:
    failed_with_a_receipt(notary, call(notary.front, make_open(), result), kind, outcome)


def test_an_intent_is_closed_once_whatever_its_worker_repeats(notary: Running) -> None:
    asked = make_open()
    number = notary.front.begin(asked)
    worker, result = notary.workers.of(asked.intent_id), make_result(call_id=asked.intent_id)
    for _ in range(10):
        worker.tell(result)
    closed = notary.front.answer(number)
    worker.tell(result)
    notary.workers.end(worker)
    record_call(notary.front)
    receipts = notary.stored("SELECT json_extract(bytes, '$.receipt_id') FROM receipts ORDER BY seq")
    assert (len(receipts), receipts[0]) == (2, closed.receipt_id)
    assert len(notary.events()) == 2
    assert walk(notary.front).intact


def test_an_open_asked_again_by_its_own_front_is_refused_and_the_call_ends_all_the_same(notary: Running) -> None:
    asked = make_open()
    number = notary.front.begin(asked)
    with pytest.raises(Told) as told:
        notary.front.ask(asked)
    assert told.value.problem == "refused"
    assert notary.front.finish(asked, number, make_result()).kind == "success"
    with pytest.raises(Told):
        notary.front.ask(asked)
    assert len(notary.events()) == 1


def test_an_approval_ends_with_its_call_in_the_same_unit(notary: Running) -> None:
    front = notary.front
    approval = held_and_claimed(front)
    asked = make_approved(approval)
    number = front.begin(asked)
    closed = front.finish(asked, number, make_result())
    ended = front.ask(GetHold(approval.approval_id))
    assert (ended.state, ended.holder) == ("approved", None)
    assert json.loads(ended.outcome) == {
        "claimed_by": "alice", "completed_at": iso(NOW), "receipt_id": closed.receipt_id,
    }  # fmt: skip


def test_an_approval_that_has_ended_otherwise_stays_unchanged(notary: Running) -> None:
    front = notary.front
    approval = held_and_claimed(front)
    asked = make_approved(approval)
    number = front.begin(asked)
    assert front.ask(make_denial(approval)).state == "denied"
    front.finish(asked, number, make_result())
    assert front.ask(GetHold(approval.approval_id)).state == "denied"
