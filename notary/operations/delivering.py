"""What senders of deliveries ask: claims, and what became of what was claimed."""

from ipc.evidence import Delivery
from ipc.messages import ClaimDeliveries, GiveUpDeliveries, SettleDelivery
from notary.ledger import outbox
from notary.unit import Unit


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
