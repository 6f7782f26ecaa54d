"""Operations on deliveries: the deliverer claims and settles them, operators list them and send them again."""

from ipc.evidence.events import WEBHOOKS_REDELIVERED
from ipc.evidence.records import Delivery
from ipc.operations.deliveries import (
    ClaimDeliveries,
    ListDeliveries,
    ListedDeliveries,
    RedeliverDeliveries,
    Requeued,
    SettleDelivery,
)
from ipc.operations.operation import Operation
from notary.ledger import dead_letters, outbox
from notary.ledger.sent_summaries import has_summary, with_summary
from notary.operations.allowed import check_event
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

MAX_LISTED = 500
_ENDPOINT = "SELECT endpoint FROM outbox WHERE seq = ? AND attempts = ? AND event_id = ?"


class Orphaned(Operation[int], frozen=True):
    """Asked by the notary itself: give up some deliveries to an endpoint that is not configured any more, of those that
    were due until then (milliseconds)."""

    endpoint: str
    due_until: int = outbox.WHENEVER


@performs(ClaimDeliveries, writes=True)
def claim_deliveries(unit: Transaction, asked: ClaimDeliveries) -> list[Delivery]:
    """See ClaimDeliveries."""
    claimed = outbox.claim(unit.connection, asked)
    if any(map(has_summary, claimed)):
        unit.settle()
        claimed = [with_summary(unit.connection, one) for one in claimed]
    return claimed


@performs(SettleDelivery, writes=True)
def settle_delivery(unit: Transaction, asked: SettleDelivery) -> None:
    """See SettleDelivery."""
    name = (asked.seq, asked.attempt, asked.event_id)
    row = unit.connection.execute(_ENDPOINT, name).fetchone()
    waits = not outbox.settle(unit.connection, asked)
    if row is not None:
        unit.after(lambda: unit.state.backlog.note_settled(row[0], asked, waits=waits))


@performs(Orphaned, writes=True)
def give_up_orphaned(unit: Transaction, asked: Orphaned) -> int:
    """See Orphaned; how many were given up."""
    error = "the endpoint is not configured any more"
    at = int(unit.now * 1000)
    count = outbox.give_up(unit.connection, asked.endpoint, at=at, error=error, due_until=asked.due_until)
    unit.after(lambda: unit.state.backlog.note_drops(outbox.OTHER, "not_configured", count))
    return count


@performs(ListDeliveries)
def list_deliveries(unit: Transaction, asked: ListDeliveries) -> ListedDeliveries:
    """See ListDeliveries."""
    letters = dead_letters.newest(unit.connection, asked.endpoint, min(max(asked.limit, 0), MAX_LISTED))
    return ListedDeliveries(outbox.waiting(unit.connection), dead_letters.count(unit.connection), letters)


@performs(RedeliverDeliveries, writes=True)
def redeliver(unit: Transaction, asked: RedeliverDeliveries) -> Requeued:
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
        unit.woken.add(asked.endpoint)
    return Requeued(count, dead_letters.count(unit.connection).get(asked.endpoint, 0))
