"""Deliveries: there with their events, one front has each at a time, and too late is too late."""

from typing import Any

import pytest

from ipc.evidence import Delivery
from ipc.operations.deliveries import NextDelivery
from ipc.operations.status import ReadLedger
from notary.ledger import outbox
from notary.ledger.outbox import GIVEN_UP_AT_ONCE, MAX_GIVEN_UP
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    NOW_MS,
    UNTIL,
    changed,
    claim,
    claim_one,
    make_note,
    make_refuse,
    notify,
    record_call,
    settled,
)
from tests.support.asking import Asker

GIVEN_UP = "SELECT event_id, endpoint, attempts, at, error FROM given_up ORDER BY seq"
LATE: tuple[dict[str, Any], ...] = ({}, {"due": NOW_MS}, {"at": NOW_MS, "error": "late"})


def waiting(front: Asker) -> dict[str, int]:
    counts: dict[str, int] = front.ask(ReadLedger()).waiting
    return counts


def next_due(front: Asker, endpoint: str = "chat") -> int | None:
    due_ms: int | None = front.ask(NextDelivery(endpoint))
    return due_ms


def give_up(notary: Running, endpoint: str) -> int:
    """As the notary does for an endpoint that is not configured any more."""
    with notary.stranger() as connection:
        return outbox.give_up(connection, endpoint, at=NOW_MS, error="no such endpoint")


def test_a_delivery_holds_the_body_of_its_event_for_each_endpoint_that_asked_for_its_kind(telling: Running) -> None:
    event = notify(telling.front)
    stored = telling.last_event()
    delivery = claim_one(telling.front)
    assert delivery == Delivery(
        seq=delivery.seq, event_id=stored["event_id"], kind="action.denied", endpoint="chat", payload=delivery.payload,
        attempt=1,
    )  # fmt: skip
    assert f'"trace_id":"{event.trace_id}"' in delivery.payload
    assert waiting(telling.front) == {"chat": 1, "pager": 1}
    record_call(telling.front)
    assert waiting(telling.front) == {"chat": 2, "pager": 2}
    telling.front.ask(make_note(event_type="AdminReload"))
    assert waiting(telling.front) == {"chat": 2, "pager": 2}


def test_a_delivery_is_due_from_its_events_time_on_and_the_longest_due_come_first(telling: Running) -> None:
    front = telling.front
    for seconds in (0.3, 0.5, 0.1):
        telling.clock.time = NOW + seconds
        notify(front)
    assert next_due(front) == NOW_MS + 100
    assert claim(front, now=NOW_MS + 99) == []
    written = [event["event_id"] for event in telling.events()]
    claimed = [one.event_id for limit in (0, 1, 9) for one in claim(front, now=NOW_MS + 1000, limit=limit)]
    assert claimed == [written[place] for place in (2, 0, 1)]


def test_a_claim_ends_passes_on_and_too_late_changes_nothing(telling: Running) -> None:
    front = telling.front
    notify(front)
    late = claim_one(front)
    assert (next_due(front), claim(front, now=UNTIL - 1)) == (UNTIL, [])
    second = claim_one(front, now=UNTIL, until=UNTIL + 10)
    assert second == changed(late, attempt=2)
    for given in LATE:
        front.ask(settled(late, **given))
        assert (next_due(front), waiting(front)["chat"]) == (UNTIL + 10, 1)
    front.ask(settled(second))
    assert waiting(front) == {"pager": 1}
    # Its number may be that of another delivery later, which has been claimed as often as the late one knows.
    assert give_up(telling, "pager") == 1
    notify(front)
    new = claim_one(front)
    assert (new.seq, new.attempt) == (late.seq, late.attempt)
    for given in LATE:
        front.ask(settled(late, **given))
    assert next_due(front) == UNTIL


def test_a_delivery_that_is_given_up_is_kept_with_its_reason(telling: Running) -> None:
    front = telling.front
    notify(front)
    front.ask(settled(claim_one(front), due=NOW_MS))
    front.ask(settled(claim_one(front), at=NOW_MS + 7, error="x" * 5000))
    (event,) = telling.events()
    assert telling.stored(GIVEN_UP) == [(event["event_id"], "chat", 2, NOW_MS + 7, "x" * 500)]


def test_a_finished_delivery_is_counted_down_once(telling: Running) -> None:
    assert telling.thread is not None
    front, backlog = telling.front, telling.thread.state.backlog
    for _ in range(3):
        notify(front)
    first, second, third = claim(front)
    for said, left in (
        (settled(first, due=NOW_MS), 3), (settled(second), 2), (settled(second), 2), (settled(second, error="late"), 2),
        (settled(third, error="no"), 1), (settled(third), 1),
    ):  # fmt: skip
        front.ask(said)
        assert backlog.waiting == {"chat": left, "pager": 3}
    assert waiting(front) == backlog.waiting
    assert telling.stored(GIVEN_UP)[0][3] == 0, "nobody said when"


def test_everything_of_an_endpoint_is_given_up_a_part_at_a_time_claimed_or_not(telling: Running) -> None:
    front = telling.front
    count = 2 * GIVEN_UP_AT_ONCE + 30
    for number in front.send(*[make_refuse()] * count):
        front.answer(number)
    held = claim(front, limit=20)
    moved = [give_up(telling, "chat") for _ in range(4)]
    assert moved == [GIVEN_UP_AT_ONCE, GIVEN_UP_AT_ONCE, 30, 0]
    assert waiting(front) == {"pager": count}
    for given in LATE:
        front.ask(settled(held[0], **given))
    assert len(telling.stored(GIVEN_UP)) == count


def test_the_newest_dead_letters_are_kept(telling: Running) -> None:
    with telling.stranger() as connection:
        connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO given_up"
            " (event_id, kind, endpoint, payload, attempts, at, error) SELECT 'evt_' || i, '', '', '', 1, i, '' FROM n",
            (MAX_GIVEN_UP - 1,),
        )
    for _ in range(3):
        notify(telling.front)
    for delivery in claim(telling.front):
        telling.front.ask(settled(delivery, at=NOW_MS, error="no"))
    kept = telling.stored("SELECT event_id FROM given_up ORDER BY seq")
    assert (len(kept), kept[0]) == (MAX_GIVEN_UP, "evt_3")


def test_a_delivery_that_makes_no_sense_is_no_hindrance_to_evidence(telling: Running) -> None:
    front = telling.front
    notify(front)
    with telling.stranger() as connection:
        connection.execute("UPDATE outbox SET payload = CAST(x'ff' AS TEXT) WHERE endpoint = 'chat'")
    with pytest.raises(Exception, match="fault"):
        claim(front)
    record_call(front)
    assert len(claim(front, "pager")) == 2
    assert give_up(telling, "chat") == 2
