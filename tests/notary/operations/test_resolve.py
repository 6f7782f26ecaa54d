"""An operator resolves an intent that has no receipt, and its caller's list of own calls follows."""

from ipc.operations.evidence import ReadCheckpoint
from ipc.operations.intents import IntentResolution, ListUnresolved
from ipc.operations.own_calls import ListOwnCalls
from ipc.operations.status import ReadLedger
from tests.notary.lost import OVER, lost_call
from tests.notary.running import Running, walk
from tests.notary.samples import make_open, make_resolution, record_call


def test_it_leaves_list_and_gauge_with_an_event_and_no_receipt(notary: Running) -> None:
    intent_id = lost_call(notary)
    notary.clock.time += OVER
    (view,) = notary.front.ask(ListUnresolved(5))
    resolved = notary.front.ask(make_resolution(intent_id, reason="the bank says so"))
    assert resolved == IntentResolution(view.trace_id, view.action_id)
    event = notary.last_event()
    assert event.items() >= {
        "event_type": "IntentResolved", "intent_id": intent_id, "trace_id": view.trace_id, "grant_id": view.grant_id,
        "action_id": view.action_id, "change": {"outcome": "happened"}, "principal": "operator:ops",
        "reason": "the bank says so",
    }.items()  # fmt: skip
    assert notary.front.ask(ListUnresolved(5)) == notary.stored("SELECT 1 FROM receipts") == []
    assert notary.front.ask(ReadLedger()).unresolved == 0
    assert notary.front.ask(ReadCheckpoint()).unresolved_intents == 0
    assert walk(notary.front).intact
    assert notary.front.ask(make_resolution(intent_id)) is None
    assert walk(notary.restart()).intact
    assert notary.front.ask(ListUnresolved(5)) == []


def test_one_that_may_still_end_is_left_alone(notary: Running) -> None:
    call = make_open()
    number = notary.front.begin(call)
    notary.clock.time += OVER
    assert notary.front.ask(make_resolution(call.intent_id)).is_under_way
    worker = notary.workers.of(call.intent_id)
    worker.word()
    notary.workers.end(worker)
    assert notary.front.answer(number).kind == "internal_error"
    recent = lost_call(notary)
    assert notary.front.ask(make_resolution(recent)).is_under_way
    assert [view.intent_id for view in notary.front.ask(ListUnresolved(5))] == [recent]


def test_an_unreported_call_may_be_resolved_a_minute_after_its_time_limit(notary: Running) -> None:
    intent_id = lost_call(notary, timeout_seconds=30.0)
    notary.clock.time += 30.0 + 60.0 - 0.001
    assert notary.front.ask(make_resolution(intent_id)).is_under_way
    notary.clock.time += 0.001
    assert not notary.front.ask(make_resolution(intent_id)).is_under_way


def test_an_ended_or_unknown_intent_is_not_found(notary: Running) -> None:
    call, _ = record_call(notary.front)
    for intent_id in (call.intent_id, "intent_x", ""):
        assert notary.front.ask(make_resolution(intent_id)) is None


KEY = "k" * 43


def states(notary: Running, key: str = KEY, principal: str = "uid:1000") -> list[str]:
    return [call.state for call in notary.front.ask(ListOwnCalls(principal, key, 10)).calls]


def test_a_call_without_an_end_is_listed_until_an_operator_has_found_out_and_afterwards(notary: Running) -> None:
    intent_id = lost_call(notary, event={"key_thumbprint": KEY})
    lost_call(notary, event={"key_thumbprint": "x" * 43})
    assert states(notary) == ["running"]
    notary.clock.time += OVER
    assert states(notary) == ["unknown"]
    notary.front.ask(make_resolution(intent_id, "did_not_happen"))
    assert states(notary) == ["failed"]
    assert states(notary, "y" * 43) == []
    assert states(notary, principal="uid:1001") == [], "another principal with this key"
