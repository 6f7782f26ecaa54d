"""The behaviour that all kinds of ledger share, tested through operations alone: no test here knows a table."""

import json
from base64 import b64decode
from typing import Any

import pytest

from contract.evidence import Bundle
from ipc.evidence.records import EventQuery
from ipc.operations.calls import Closed
from ipc.operations.deliveries import ClaimDeliveries, ListDeliveries, NextDelivery, RedeliverDeliveries
from ipc.operations.evidence import (
    ApprovalTrace,
    Prove,
    ProveConsistency,
    QueryEvents,
    ReadCheckpoint,
    ShowReceipt,
    TraceOfApproval,
)
from ipc.operations.intents import ListUnresolved, ShowIntent
from ipc.operations.status import ReadLedger
from ipc.operations.witnesses import Cosign, NextCheckpoint
from notary.tree.merkle import check_consistency
from notary.upkeep.orphans import SHARED_SECONDS
from tests.notary.lost import OVER, lost_call
from tests.notary.running import Running, query, walk_of
from tests.notary.samples import (
    NOW,
    NOW_MS,
    UNTIL,
    call_event,
    changed,
    claim,
    held_and_claimed,
    hooks,
    make_approved,
    make_note,
    make_open,
    make_refuse,
    make_resolution,
    make_result,
    notify,
    record_call,
    settled,
)
from tests.support.asking import Asker
from tests.support.cosigners import CITY
from tests.support.gateway import wait_for

LINK = "prev_hash"


def events_of(front: Asker, **given: Any) -> list[dict[str, Any]]:
    return [json.loads(one) for one in query(front, **given)]


def trace_ids(front: Asker, **given: Any) -> list[str]:
    return [one["trace_id"] for one in events_of(front, **given)]


def test_events_are_linked_in_the_order_in_which_they_were_written(kept: Running) -> None:
    written = [notify(kept.front).trace_id for _ in range(3)]
    kept.restart()
    written.append(notify(kept.front).trace_id)
    events = list(reversed(events_of(kept.front)))
    assert [one["trace_id"] for one in events] == written
    assert events[0][LINK] is None
    assert len({one[LINK] for one in events}) == len(written)


def test_a_call_has_event_receipt_and_proof_of_both(kept: Running) -> None:
    asked, closed = record_call(kept.front)
    shown = kept.front.ask(ShowReceipt(closed.receipt_id))
    assert (shown.signature_status, json.loads(shown.receipt)["grant_id"]) == ("verified", closed.grant_id)
    assert kept.front.ask(ShowReceipt("rcpt_none")) is None
    bundle: Bundle = kept.front.ask(Prove(receipt_id=closed.receipt_id))
    assert {leaf.kind for leaf in bundle.leaves} == {"event", "intent"}
    (event,) = events_of(kept.front, trace_id=asked.event.trace_id)
    assert (event["receipt_id"], event["intent_id"]) == (closed.receipt_id, asked.intent_id)
    assert kept.front.ask(Prove(intent_id=asked.intent_id)).leaves
    assert kept.front.ask(Prove(event_id="evt_none")) is None


def test_every_filter_finds_what_it_names_newest_first(kept: Running) -> None:
    front, traces = kept.front, []
    for number in range(6):
        kept.clock.time = NOW + number
        event = call_event(session_id=f"ses_{number % 2}", principal=f"uid:{number % 3}")
        front.ask(changed(make_refuse(), event=changed(event, decision="deny", error_code="policy_denied")))
        traces.append(event.trace_id)
    front.ask(make_note(action_id=None))
    newest = list(reversed(traces))
    calls = {"event_type": "ActionCall"}
    assert trace_ids(front, **calls) == newest
    assert trace_ids(front, **calls, limit=2) == newest[:2]
    assert trace_ids(front, trace_id=traces[2]) == [traces[2]]
    assert trace_ids(front, session_id="ses_0", **calls) == newest[1::2]
    assert trace_ids(front, principal="uid:1", **calls) == [traces[4], traces[1]]
    assert trace_ids(front, decision="deny", session_id="ses_1") == newest[::2]
    assert trace_ids(front, action_id="text_digest", decision="deny") == newest
    assert trace_ids(front, **calls, after=NOW + 1, before=NOW + 4) == [traces[3], traces[2]]
    assert trace_ids(front, **calls, after=NOW + 4.9995) == [traces[5]]
    assert [one["event_type"] for one in events_of(front, event_type="GatewayStarted")] == ["GatewayStarted"]
    assert trace_ids(front, decision="pending_approval") == []


def test_an_intent_waits_until_its_end_and_is_listed_meanwhile(kept: Running) -> None:
    front, asked = kept.front, make_open()
    number = front.begin(asked)
    later = make_open()
    front.begin(later)
    assert [one.intent_id for one in front.ask(ListUnresolved(9))] == [later.intent_id, asked.intent_id]
    assert [one.intent_id for one in front.ask(ListUnresolved(9, later.intent_id))] == [asked.intent_id]
    assert front.ask(ListUnresolved(9, "intent_unknown")) == [], "a page behind nothing is no first page"
    assert front.ask(ShowIntent(asked.intent_id)).is_under_way
    assert front.ask(ReadLedger()).unresolved == 2
    assert isinstance(front.finish(asked, number, make_result()), Closed)
    assert [one.intent_id for one in front.ask(ListUnresolved(9))] == [later.intent_id]
    assert front.ask(ShowIntent(asked.intent_id)) is None


def test_an_intent_that_an_operator_resolves_waits_no_more(kept: Running) -> None:
    intent_id = lost_call(kept)
    kept.clock.time += OVER
    assert kept.front.ask(make_resolution(intent_id, "unknown")) is not None
    assert kept.front.ask(ListUnresolved(9)) == []
    assert kept.front.ask(ReadLedger()).unresolved == 0


def test_the_outcome_of_an_approval_is_found_by_its_id(kept: Running) -> None:
    front, approval = kept.front, held_and_claimed(kept.front)
    named = TraceOfApproval(approval.approval_id)
    assert front.ask(named) == ApprovalTrace(None, has_intent=False)
    asked = make_approved(approval)
    number = front.begin(asked)
    assert front.ask(named) == ApprovalTrace(None, has_intent=True)
    closed = front.finish(asked, number, make_result())
    assert front.ask(named) == ApprovalTrace(closed.receipt_id, has_intent=True)
    assert front.ask(TraceOfApproval("apr_none")) == ApprovalTrace(None, has_intent=False)


def test_a_delivery_is_claimed_by_one_put_off_given_up_and_sent_again(kept: Running) -> None:
    front = kept.front
    first, second = notify(front), notify(front)
    assert front.ask(ReadLedger()).waiting == {"chat": 2, "pager": 2}
    assert front.ask(NextDelivery("chat")) == NOW_MS
    deliveries = claim(front)
    assert [json.loads(one.payload)["data"]["trace_id"] for one in deliveries] == [first.trace_id, second.trace_id]
    assert [one.attempt for one in deliveries] == [1, 1]
    assert claim(front) == []
    front.ask(settled(deliveries[0]))
    front.ask(settled(deliveries[1], due=NOW_MS + 5))
    (again,) = claim(front, now=NOW_MS + 5, until=UNTIL)
    assert (again.event_id, again.attempt) == (deliveries[1].event_id, 2)
    front.ask(settled(deliveries[1]))  # an expired claim has no effect
    front.ask(settled(again, error="refused \x00 by 'it'", at=NOW_MS + 9))
    (dead,) = front.ask(ListDeliveries("chat", 9)).letters
    assert (dead.event_id, dead.attempts, dead.at) == (again.event_id, 2, NOW_MS + 9)
    assert front.ask(ClaimDeliveries("chat", UNTIL + 9, UNTIL + 10, 9)) == []
    event = call_event(event_type="WebhooksRedelivered", decision="allow", principal="alice", session_id=None)
    assert front.ask(RedeliverDeliveries("chat", None, NOW_MS + 10, event)).count == 1
    assert front.ask(ListDeliveries(None, 9)).letters == []
    assert len(claim(front, now=NOW_MS + 10, until=UNTIL)) == 1


def test_all_that_waits_for_an_endpoint_that_is_gone_is_given_up(kept: Running) -> None:
    for _ in range(3):
        notify(kept.front)
    kept.settings = changed(kept.settings, webhooks=hooks("pager"))
    kept.clock.time += SHARED_SECONDS
    kept.restart()
    wait_for(lambda: kept.front.ask(ReadLedger()).waiting == {"pager": 3}, "what was given up")
    gone = "the endpoint is not configured any more"
    assert [one.error for one in kept.front.ask(ListDeliveries("chat", 9)).letters] == [gone] * 3


def test_a_tree_grows_over_restarts_and_each_checkpoint_continues_the_one_before(kept: Running) -> None:
    sizes, roots = [], []
    for number in (1, 300, 2):
        for one in [kept.front.send(make_note()) for _ in range(number)]:
            kept.front.answer(one[0])
        shown = kept.front.ask(ReadCheckpoint())
        sizes.append(shown.size)
        roots.append(shown.root)
        kept.restart()
    assert sizes == [1, 301, 303]
    for before, root in zip(sizes, roots, strict=True):
        proven = kept.front.ask(ProveConsistency(before))
        hashes = [b64decode(one) for one in proven.proof]
        check_consistency(before, b64decode(root), sizes[-1], b64decode(roots[-1]), hashes)


def test_a_cosignature_is_kept_with_its_checkpoint(kept: Running) -> None:
    record_call(kept.front)
    note = kept.front.ask(ReadCheckpoint()).checkpoint
    size = kept.front.ask(NextCheckpoint(CITY.name, None)).size
    assert kept.front.ask(Cosign(CITY.name, size, CITY.lines(note, NOW))) is None
    kept.restart()
    (status,) = kept.front.ask(ReadLedger()).checkpoint.witnesses
    assert (status.name, status.size) == (CITY.name, size)
    assert CITY.name in kept.front.ask(ReadCheckpoint()).checkpoint


def test_a_lost_answer_is_sent_again_and_its_operation_is_done_once(kept: Running) -> None:
    front = kept.attach("asks-again")
    asked = [make_note(), make_refuse(), make_note()]
    numbers = front.send(*asked)
    told = [front.heard(number) for number in numbers]
    again = kept.followed("asks-again", dict(zip(numbers, asked, strict=True)))
    assert [again.heard(number) for number in numbers] == told
    assert len(query(kept.front)) == len(asked)


def test_a_unit_of_many_operations_refuses_one_and_writes_the_others(kept: Running) -> None:
    front = kept.front
    asked = [make_open() for _ in range(20)]
    asked[7] = changed(asked[7], intent_id=asked[3].intent_id)
    heard = [front.heard(number) for number in front.send(*asked)]
    assert [one.problem for one in heard] == [None] * 7 + ["refused"] + [None] * 12
    assert len(query(front)) == 19
    assert front.ask(ReadLedger()).unresolved == 0


@pytest.mark.parametrize("text", ["\u0000", "é ﷽ 🜂", "'); DROP TABLE events; --", "\\", "%s ? ?1 :a $1"])
def test_any_text_is_kept_as_it_is(kept: Running, text: str) -> None:
    kept.front.ask(make_note(reason=text))
    (event,) = kept.front.ask(QueryEvents(EventQuery(event_type="GatewayStarted"))).events
    assert json.loads(event)["reason"] == text


def test_the_whole_ledger_is_walked_and_found_intact(kept: Running) -> None:
    for _ in range(3):
        record_call(kept.front)
        notify(kept.front)
    held_and_claimed(kept.front)
    kept.front.ask(ReadCheckpoint())
    report = walk_of(kept)
    assert (report.intact, report.total_events, report.size) == (True, 7, 10), report.reason
