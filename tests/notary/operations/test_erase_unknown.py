"""EraseKept and calls without an event of their end: values of an unknown outcome are erased, those of a running call
stay until it ends."""

from ipc.events import AuditEvent
from ipc.kept_values import KeptValue, KeptValues
from ipc.operations.erasing import ErasedKept, EraseKept
from ipc.operations.intents import ResolveIntent
from notary.operations.erasing import AT_ONCE
from tests.notary.lost import OVER, lost_call
from tests.notary.operations.test_erase_kept import LEFT, OF_PERSON, erase, erase_all, has_bytes
from tests.notary.running import Running, walk_of
from tests.notary.samples import call_event, make_open

BY = AuditEvent(event_type="IntentResolved", principal="operator:dev", decision="allow", reason="looked")


def test_values_of_a_call_whose_outcome_is_unknown_are_erased_and_its_later_end_verifies(notary: Running) -> None:
    intent_id = lost_call(notary, kept=OF_PERSON)
    assert erase(notary, principal="uid:1000") == ErasedKept(0, 1, None)
    assert notary.stored(LEFT) == [2]
    notary.clock.time += OVER
    assert erase(notary, principal="uid:7") == ErasedKept(0, 0, None)
    assert erase(notary, principal="uid:1000", before=notary.clock.time - OVER) == ErasedKept(0, 0, None)
    assert erase(notary, principal="uid:1000") == ErasedKept(2, 0, None)
    commitments = notary.last_event()["change"]["commitments"]
    notary.front.ask(ResolveIntent(intent_id, "unknown", BY))
    notary.stop()
    assert has_bytes(notary) == []
    assert sorted(notary.last_event()["kept"].values()) == sorted(commitments)
    notary.start()
    assert walk_of(notary).intact


def test_an_erasure_of_one_call_reaches_what_has_no_end(notary: Running) -> None:
    held = call_event(trace_id="trc_same")
    lost_call(notary, event={"trace_id": "trc_same"}, kept=OF_PERSON)
    lost_call(notary, event={"trace_id": "trc_other"}, kept=OF_PERSON)
    notary.front.ask(make_open(event=held))
    notary.clock.time += OVER
    assert erase(notary, event_id=notary.last_event()["event_id"]) == ErasedKept(2, 0, None)
    assert notary.stored(LEFT) == [2]


def test_more_unknown_outcomes_than_one_operation_erases_take_several(notary: Running) -> None:
    for _ in range(AT_ONCE + 2):
        lost_call(notary, kept=KeptValues((KeptValue("/a", "1"),)))
    notary.clock.time += OVER
    first = notary.front.ask(EraseKept(AuditEvent(event_type="EvidenceErased", decision="allow"), principal="uid:1000"))
    assert (first.values, first.next) == (AT_ONCE, 0)
    assert erase_all(notary) == 0
    assert notary.stored(LEFT) == [0]
