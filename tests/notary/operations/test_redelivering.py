"""Deliveries: the counters of attempts and drops, and those that were given up and wait again at an operator's word."""

from typing import Any

import pytest

from ipc.evidence.events import WEBHOOKS_REDELIVERED, AuditEvent
from ipc.evidence.records import AbandonedDelivery
from ipc.operations.deliveries import ListDeliveries, ListedDeliveries, NextDelivery, RedeliverDeliveries, Requeued
from ipc.operations.status import ReadLedger
from notary.ledger import outbox
from notary.ledger.dead_letters import AT_ONCE
from notary.operations.delivering import MAX_LISTED
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, UNTIL, changed, claim, claim_one, hooks, notify, own_event, settled
from tests.support.asking import Asker, Told

LATER = NOW_MS + 60_000


def give_up(telling: Running, endpoint: str, *, at: int, error: str) -> None:
    """All that waits for it, a part at a time, as the notary does."""
    with telling.stranger() as connection:
        while outbox.give_up(connection, endpoint, at=at, error=error):
            pass
    telling.front.ask(ReadLedger())  # counts what waits anew


def given_up(telling: Running, count: int, endpoint: str = "chat") -> list[str]:
    """Make so many dead letters of an endpoint; return the ids of their events, oldest first."""
    for _ in range(count):
        notify(telling.front)
    give_up(telling, endpoint, at=NOW_MS, error="gone")
    return [event["event_id"] for event in telling.events()[-count:]]


def listed(front: Asker, endpoint: str | None = None, limit: int = 50) -> ListedDeliveries:
    deliveries: ListedDeliveries = front.ask(ListDeliveries(endpoint, limit))
    return deliveries


def redeliver(event_id: str | None = None, endpoint: str = "chat", **event: Any) -> RedeliverDeliveries:
    fields: dict[str, Any] = {"event_type": WEBHOOKS_REDELIVERED, "principal": "alice"}
    return RedeliverDeliveries(endpoint, event_id, LATER, own_event(**fields | event))


def test_they_are_listed_newest_first_of_one_endpoint_or_of_all_beside_what_waits(telling: Running) -> None:
    events = given_up(telling, 3)
    give_up(telling, "pager", at=NOW_MS + 1, error="told to")
    deliveries = listed(telling.front)
    assert (deliveries.waiting, deliveries.given_up) == ({}, {"chat": 3, "pager": 3})
    assert [(one.event_id, one.endpoint) for one in deliveries.letters] == [
        (event_id, endpoint) for endpoint in ("pager", "chat") for event_id in reversed(events)
    ]  # fmt: skip
    assert listed(telling.front, "chat", 1).letters == [
        AbandonedDelivery(
            event_id=events[2], kind="action.denied", endpoint="chat", attempts=0, at=NOW_MS, error="gone"
        )
    ]
    assert [len(listed(telling.front, "chat", limit).letters) for limit in (-1, 0, 2, 3, 4)] == [0, 0, 2, 3, 3]
    notify(telling.front)
    assert listed(telling.front, "none").letters == []
    assert listed(telling.front, "none").waiting == {"chat": 1, "pager": 1}


def test_no_list_is_longer_than_one_answer_takes(telling: Running) -> None:
    given_up(telling, MAX_LISTED + 1)
    assert len(listed(telling.front, limit=10_000).letters) == MAX_LISTED


def test_a_redelivered_letter_waits_once_with_fresh_attempts_and_an_event(telling: Running) -> None:
    events = given_up(telling, 3)
    assert telling.front.ask(redeliver()) == Requeued(3, 0)
    assert telling.last_event()["event_type"] == WEBHOOKS_REDELIVERED
    assert telling.last_event()["reason"] == "3 deliveries of chat wait again"
    assert listed(telling.front).waiting == {"chat": 3, "pager": 3}
    assert listed(telling.front).given_up == {}
    assert telling.thread.state.backlog.waiting == {"chat": 3, "pager": 3}
    assert claim(telling.front, now=LATER - 1) == []
    again = claim(telling.front, now=LATER, until=LATER + 1)
    assert [(one.event_id, one.attempt) for one in again] == [(event_id, 1) for event_id in events]
    count = len(telling.events())
    assert telling.front.ask(redeliver()) == Requeued(0, 0)
    assert len(telling.events()) == count, "nothing was done, and nothing is told"


def test_a_single_event_can_be_redelivered(telling: Running) -> None:
    events = given_up(telling, 3)
    assert telling.front.ask(redeliver(events[1])) == Requeued(1, 2)
    assert telling.last_event()["reason"] == f"1 deliveries of chat wait again: {events[1]}"
    assert telling.front.ask(redeliver("evt_" + "x" * 100)) == Requeued(0, 2)
    assert [one.event_id for one in listed(telling.front).letters] == [events[2], events[0]]


def test_no_more_wait_again_than_there_is_room_for_and_the_oldest_first(telling: Running) -> None:
    events = given_up(telling, 4)
    notify(telling.front)
    telling.thread.state.backlog.max_waiting = 3
    assert telling.front.ask(redeliver()) == Requeued(2, 2)
    assert telling.front.ask(redeliver()) == Requeued(0, 2)
    telling.thread.state.backlog.max_waiting = 1  # less than wait already
    assert telling.front.ask(redeliver()) == Requeued(0, 2)
    assert [one.event_id for one in listed(telling.front).letters] == [events[3], events[2]]


def test_one_request_moves_a_bounded_number(telling: Running) -> None:
    given_up(telling, AT_ONCE + 1)
    assert telling.front.ask(redeliver()) == Requeued(AT_ONCE, 1)


def test_an_endpoint_that_is_configured_no_more_gets_nothing(telling: Running) -> None:
    given_up(telling, 1)
    telling.stop()
    telling.settings = changed(telling.settings, webhooks=hooks("pager"))
    front = telling.start()
    with pytest.raises(Told, match="nothing is sent"):
        front.ask(redeliver())
    assert listed(front).given_up == {"chat": 1}


def test_attempts_and_drops_are_counted_by_what_the_deliverer_says_and_once(telling: Running) -> None:
    for _ in range(5):
        notify(telling.front)
    late, fine, *others = claim(telling.front)
    telling.front.ask(settled(late, due=UNTIL))
    for _ in range(2):
        telling.front.ask(settled(fine))
    for delivery, reason in zip(others, ("rejected", "blocked", "a word of its own"), strict=True):
        telling.front.ask(settled(delivery, at=NOW_MS, error="no", reason=reason))
    told = telling.front.ask(ReadLedger())
    assert told.attempts == {"chat": {"delivered": 1, "failed": 4}}
    assert told.drops == {"chat": {"rejected": 1, "blocked": 1, "other": 1}}


def test_a_redelivery_wakes_the_deliverer(telling: Running) -> None:
    notify(telling.front)
    telling.front.ask(settled(claim_one(telling.front), at=NOW_MS, error="no"))
    before = len(telling.deliverer.woken)
    event = AuditEvent(event_type="WebhooksRedelivered", principal="operator:alice", decision="allow")
    assert telling.front.ask(RedeliverDeliveries("chat", None, NOW_MS, event)).count == 1
    telling.deliverer.ask(NextDelivery("chat"))
    assert telling.deliverer.woken[before:] in ([("chat",)], [("chat", "pager")], [("pager", "chat")])
