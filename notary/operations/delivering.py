"""What senders of deliveries ask: claims, and what became of what was claimed."""

from ipc.events import WEBHOOKS_REDELIVERED
from ipc.evidence import Delivery
from ipc.messages import (
    ClaimDeliveries,
    GiveUpDeliveries,
    ListDeliveries,
    ListedDeliveries,
    RedeliverDeliveries,
    Requeued,
    SettleDelivery,
)
from notary.ledger import dead_letters, outbox
from notary.operations.allowed import check_event
from notary.unit import NotAllowed, Unit

MAX_LISTED = 500


def claim_deliveries(unit: Unit, asked: ClaimDeliveries) -> list[Delivery]:
    """See ClaimDeliveries."""
    return outbox.claim(unit.connection, asked)


def settle_delivery(unit: Unit, asked: SettleDelivery) -> None:
    """See SettleDelivery."""
    row = unit.connection.execute("SELECT endpoint FROM outbox WHERE seq = ?", (asked.seq,)).fetchone()
    if outbox.settle(unit.connection, asked):  # then it was there
        unit.after(lambda: unit.state.backlog.less(row[0]))


def give_up_deliveries(unit: Unit, asked: GiveUpDeliveries) -> int:
    """See GiveUpDeliveries."""
    count = outbox.give_up(unit.connection, asked)
    unit.after(lambda: unit.state.backlog.less(asked.endpoint, count))
    return count


def list_deliveries(unit: Unit, asked: ListDeliveries) -> ListedDeliveries:
    """See ListDeliveries."""
    letters = dead_letters.newest(unit.connection, asked.endpoint, min(max(asked.limit, 0), MAX_LISTED))
    return ListedDeliveries(outbox.waiting(unit.connection), dead_letters.count(unit.connection), letters)


def redeliver(unit: Unit, asked: RedeliverDeliveries) -> Requeued:
    """See RedeliverDeliveries. Raises NotAllowed."""
    check_event(asked.event, WEBHOOKS_REDELIVERED, frozenset({"allow"}))
    if asked.event.change is not None or asked.event.reason is not None:
        raise NotAllowed("a redelivery that says more than that")
    backlog = unit.state.backlog
    if asked.endpoint not in backlog.waiting:
        raise NotAllowed("an endpoint to which nothing is sent")
    room = backlog.max_waiting - backlog.waiting[asked.endpoint]
    count = dead_letters.requeue(unit.connection, asked, room)
    if count:
        told = f"{count} deliveries of {asked.endpoint} wait again"
        unit.append(asked.event, reason=told if asked.event_id is None else f"{told}: {asked.event_id[:64]}")
        unit.after(lambda: backlog.follow(outbox.Queued({asked.endpoint: count}, {})))
    return Requeued(count, dead_letters.count(unit.connection).get(asked.endpoint, 0))
