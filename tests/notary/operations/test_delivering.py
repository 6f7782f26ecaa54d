"""The notary's count of waiting deliveries of an endpoint, which it keeps in memory and updates with each delivery's
outcome."""

from ipc.events import AuditEvent
from ipc.messages import NextDelivery, ReadLedger, RedeliverDeliveries
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, UNTIL, changed, claim, claim_one, notify, settled


def waiting(notary: Running) -> dict[str, int]:
    assert notary.thread is not None
    return dict(notary.thread.state.backlog.waiting)


def test_a_delivery_that_is_settled_waits_no_more_and_one_that_comes_again_later_does(telling: Running) -> None:
    front = telling.front
    for _ in range(3):
        notify(front)
    assert waiting(telling) == {"chat": 3, "pager": 3}
    first, second, third = claim(front)
    front.ask(settled(first))
    assert waiting(telling) == {"chat": 2, "pager": 3}
    front.ask(settled(second, due=UNTIL))
    assert waiting(telling) == {"chat": 2, "pager": 3}
    front.ask(settled(third, at=NOW_MS, error="late"))
    assert waiting(telling) == {"chat": 1, "pager": 3}


def test_an_outcome_that_is_late_or_of_another_claim_changes_no_count(telling: Running) -> None:
    notify(telling.front)
    notify(telling.front)
    delivery, other = claim(telling.front)
    telling.front.ask(settled(changed(other, attempt=other.attempt + 1)))
    assert waiting(telling) == {"chat": 2, "pager": 2}
    for _ in range(2):
        telling.front.ask(settled(delivery))
    assert waiting(telling) == {"chat": 1, "pager": 2}


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
