"""What every outbox promises of claims: deliveries are there with their events, and one front has each at a time."""

from typing import Any

import pytest
import trio

from frontend.evidence.ledger import AlreadyRecorded
from frontend.evidence.measured import measured
from frontend.evidence.outbox import FAR_MS, Delivery, Outbox
from frontend.evidence.sqlite import SqliteLedger
from frontend.telemetry.metrics import Metrics
from tests.frontend.evidence.conftest import OpenLedger
from tests.frontend.evidence.samples import (
    NOW,
    NOW_MS,
    UNTIL,
    changed,
    claim,
    claim_one,
    make_event,
    make_intent,
    make_receipt,
    make_rows,
    notify,
    record_call,
)


async def test_it_is_an_outbox(ledger: SqliteLedger) -> None:
    promised: Outbox = ledger.outbox
    assert await promised.waiting() == {}
    assert await promised.next_due("chat") is None
    assert await claim(ledger) == []
    assert await promised.give_up_all("chat", at=NOW_MS, error="gone") == 0


async def test_a_claim_holds_what_the_event_asked_for(ledger: SqliteLedger) -> None:
    payload = '{"a":"é\\u0000\\"\\n","b":[1.5,null]}'
    event = await notify(ledger, "chat", payload=payload)
    delivery = await claim_one(ledger)
    assert delivery == Delivery(
        seq=delivery.seq, event_id=event.event_id, kind="action.executed", endpoint="chat", payload=payload, attempt=1
    )


async def test_an_event_that_is_refused_leaves_no_delivery_and_those_beside_it_keep_theirs(
    ledger: SqliteLedger,
) -> None:
    written = []

    async def refused() -> None:
        event = make_event(intent_id="intent_x")
        with pytest.raises(AlreadyRecorded):
            await ledger.record(receipt=None, event=event, outbox=make_rows(event, "chat"), intent_id="intent_x")

    async def had() -> None:
        written.append((await notify(ledger, "chat")).event_id)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(refused)
            nursery.start_soon(had)
    assert {delivery.event_id for delivery in await claim(ledger)} == set(written)
    assert len(written) == 10


async def test_a_call_with_its_receipt_and_a_mere_event_notify_alike(ledger: SqliteLedger) -> None:
    intent, receipt = make_intent(), make_receipt()
    await ledger.begin(intent)
    event = make_event(receipt_id=receipt.receipt_id, intent_id=intent.intent_id)
    rows = make_rows(event, "chat", "pager")
    await ledger.record(receipt=receipt, event=event, outbox=rows, intent_id=intent.intent_id)
    other = await notify(ledger, "chat")
    assert await ledger.outbox.waiting() == {"chat": 2, "pager": 1}
    assert [delivery.event_id for delivery in await claim(ledger)] == [event.event_id, other.event_id]
    assert [delivery.event_id for delivery in await claim(ledger, "pager")] == [event.event_id]


@pytest.mark.parametrize(
    ("given", "words"),
    [({"event_id": "evt_other"}, "must name its event"), ({"payload": "\ud800"}, "surrogates not allowed")],
)
async def test_a_delivery_that_can_not_be_written_is_refused_with_its_event(
    ledger: SqliteLedger, given: dict[str, Any], words: str
) -> None:
    event = make_event()
    (row,) = make_rows(event, "chat")
    with pytest.raises(ValueError, match=words):
        await ledger.append(event, (changed(row, **given),))
    assert (await ledger.verify()).total_events == 0
    assert await ledger.outbox.waiting() == {}


async def test_a_delivery_is_due_from_its_events_time_on(ledger: SqliteLedger) -> None:
    await notify(ledger, "chat", at=NOW + 0.125)
    assert await ledger.outbox.next_due("chat") == NOW_MS + 125
    assert await claim(ledger, now=NOW_MS + 124) == []
    assert len(await claim(ledger, now=NOW_MS + 125)) == 1


async def test_the_longest_due_come_first_and_no_more_than_asked_for(ledger: SqliteLedger) -> None:
    events = [await notify(ledger, "chat", at=NOW - seconds) for seconds in (3, 5, 1, 5, 2, 4)]
    oldest_first = [events[place].event_id for place in (1, 3, 5, 0, 4, 2)]
    assert await claim(ledger, limit=0) == []
    assert await claim(ledger, limit=-1) == []
    claimed = [delivery.event_id for limit in (1, 3, 9) for delivery in await claim(ledger, limit=limit)]
    assert claimed == oldest_first


async def test_each_endpoint_has_its_own(ledger: SqliteLedger) -> None:
    await notify(ledger, "chat", "pager")
    await notify(ledger, "chat")
    (delivery,) = await claim(ledger, "pager")
    assert delivery.endpoint == "pager"
    await ledger.outbox.delivered(delivery)
    assert await ledger.outbox.waiting() == {"chat": 2}
    assert await ledger.outbox.next_due("pager") is None


async def test_of_two_fronts_one_claims(ledger: SqliteLedger, open_ledger: OpenLedger) -> None:
    other = await open_ledger()
    written = {(await notify(ledger, "chat")).event_id for _ in range(40)}
    claimed: list[str] = []

    async def take(front: SqliteLedger) -> None:
        while taken := await claim(front, limit=3):
            claimed.extend(delivery.event_id for delivery in taken)

    async with trio.open_nursery() as nursery:
        for front in (ledger, other) * 3:
            nursery.start_soon(take, front)
    assert len(claimed) == 40
    assert set(claimed) == written


async def test_a_claim_ends_and_passes_on(ledger: SqliteLedger, open_ledger: OpenLedger) -> None:
    other = await open_ledger()
    await notify(ledger, "chat")
    first = await claim_one(ledger)
    assert await other.outbox.next_due("chat") == UNTIL
    assert await claim(other, now=UNTIL - 1) == []
    second = await claim_one(other, now=UNTIL, until=UNTIL + 10)
    assert second == changed(first, attempt=2)
    await other.outbox.delivered(second)
    assert await other.outbox.waiting() == {}


async def test_deliveries_that_a_clock_dated_far_ahead_are_due_after_those_that_are(ledger: SqliteLedger) -> None:
    far = await notify(ledger, "chat", at=NOW + FAR_MS / 1000 + 0.001)
    near = await notify(ledger, "chat", at=NOW + FAR_MS / 1000)
    due = await notify(ledger, "chat", at=NOW)
    assert [delivery.event_id for delivery in await claim(ledger)] == [due.event_id, far.event_id]
    assert await claim(ledger) == []
    assert [delivery.event_id for delivery in await claim(ledger, now=NOW_MS + FAR_MS)][-1] == near.event_id


async def test_a_claim_by_a_clock_that_was_far_ahead_passes_on_once_it_is_right(ledger: SqliteLedger) -> None:
    await notify(ledger, "chat")
    year = 365 * 24 * 3600 * 1000
    lost = await claim_one(ledger, now=NOW_MS + year, until=UNTIL + year)
    assert (await claim_one(ledger)).attempt == 2
    assert await claim(ledger) == []
    await ledger.outbox.delivered(lost)
    assert await ledger.outbox.waiting() == {"chat": 1}


async def test_who_waits_is_counted_while_it_is_claimed(ledger: SqliteLedger, open_ledger: OpenLedger) -> None:
    for number in range(5):
        await notify(ledger, *("chat", "pager")[: 1 + number % 2])
    assert len(await claim(ledger, limit=2)) == 2
    for front in (ledger, await open_ledger()):
        assert await front.outbox.waiting() == {"chat": 5, "pager": 2}


async def test_deliveries_do_not_disturb_the_chain(ledger: SqliteLedger, open_ledger: OpenLedger) -> None:
    other = await open_ledger()

    async def work(front: SqliteLedger, number: int) -> None:
        await notify(front, "chat", "pager")
        await record_call(front)
        for delivery in await claim(front, limit=3):
            match number % 3:
                case 0:
                    await front.outbox.delivered(delivery)
                case 1:
                    await front.outbox.put_off(delivery, NOW_MS)
                case 2:
                    await front.outbox.give_up(delivery, at=NOW_MS, error="no")

    async with trio.open_nursery() as nursery:
        for number in range(30):
            nursery.start_soon(work, (ledger, other)[number % 2], number)
        nursery.start_soon(lambda: other.outbox.give_up_all("pager", at=NOW_MS, error="no"))
    report = await ledger.verify()
    assert (report.intact, report.total_events) == (True, 60)
    assert await ledger.unresolved_count() == 0


async def test_a_ledger_that_is_measured_has_the_same_outbox(ledger: SqliteLedger) -> None:
    outer = measured(ledger, Metrics(dict))
    event = await notify(outer, "chat")
    assert outer.outbox is ledger.outbox
    assert (await claim_one(outer)).event_id == event.event_id
