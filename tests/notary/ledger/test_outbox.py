"""Deliveries: there with their events, one front has each at a time, and too late is too late."""

import pytest

from ipc.evidence.records import Delivery
from ipc.operations.status import ReadLedger
from notary.ledger import outbox
from notary.ledger.outbox import MAX_GIVEN_UP
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, claim, claim_one, make_note, notify, record_call, settled
from tests.support.asking import Asker

GIVEN_UP = "SELECT event_id, endpoint, attempts, at, error FROM given_up ORDER BY seq"


def waiting(front: Asker) -> dict[str, int]:
    counts: dict[str, int] = front.ask(ReadLedger()).waiting
    return counts


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


def test_a_delivery_that_is_given_up_is_kept_with_its_reason(telling: Running) -> None:
    front = telling.front
    notify(front)
    front.ask(settled(claim_one(front), due=NOW_MS))
    front.ask(settled(claim_one(front), at=NOW_MS + 7, error="x" * 5000))
    (event,) = telling.events()
    assert telling.stored(GIVEN_UP) == [(event["event_id"], "chat", 2, NOW_MS + 7, "x" * 500)]


def test_the_newest_dead_letters_are_kept(telling: Running) -> None:
    telling.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO given_up"
        " (event_id, kind, endpoint, payload, attempts, at, error) SELECT 'evt_' || i, '', '', '', 1, i, '' FROM n",
        MAX_GIVEN_UP - 1,
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
    telling.execute("UPDATE outbox SET payload = CAST(x'ff' AS TEXT) WHERE endpoint = 'chat'")
    with pytest.raises(Exception, match="fault"):
        claim(front)
    record_call(front)
    assert len(claim(front, "pager")) == 2
    assert give_up(telling, "chat") == 2
