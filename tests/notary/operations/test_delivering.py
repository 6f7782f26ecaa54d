"""The counters of attempts and drops, and the wake-up of the deliverer."""

from ipc.events import AuditEvent
from ipc.operations.deliveries import NextDelivery, RedeliverDeliveries
from ipc.operations.status import ReadLedger
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, UNTIL, claim, claim_one, notify, settled


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
