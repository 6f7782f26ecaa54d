"""Writes an event: links it, and stores it with its receipt and its deliveries."""

from collections.abc import Callable, Sequence
from typing import Final

from ipc.evidence.events import AuditEvent
from notary.database import OpenTransaction
from notary.ledger.chain import event_hash, milliseconds, open_event
from notary.ledger.head import Head
from notary.ledger.message import body_of
from notary.ledger.notification_kinds import kinds_of
from notary.ledger.outbox import Backlog, Queued
from notary.ledger.page_ring import RingEntry
from notary.ledger.receipts import LedgerReceipt, encode_receipt

INSERT_EVENT: Final = (
    "INSERT INTO events (seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes,"
    " leaf) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_RECEIPT: Final = "INSERT INTO receipts (seq, receipt_id, approval_id, bytes) VALUES (?, ?, ?, ?)"
_DELIVERY: Final = "INSERT INTO outbox (event_id, kind, endpoint, due, payload) VALUES (?, ?, ?, ?, ?)"


def write_event(entry: RingEntry, head: Head, event: AuditEvent, receipt: LedgerReceipt | None = None) -> Head:
    """Append an event, and the receipt that it names; the head after it. Raises NotCanonical."""
    stored = open_event(event).closed(head.hash)
    seq = head.seq + 1
    row = (
        seq, event.event_id, event.event_type, milliseconds(event.timestamp), event.trace_id, event.principal,
        event.session_id, event.action_id, event.decision, stored,
    )  # fmt: skip
    if receipt is not None:
        entry.receipts.append((seq, receipt.receipt_id, event.approval_id, encode_receipt(receipt)))
    entry.events.append(row)
    return Head(seq, event_hash(stored))


def write_deliveries(
    connection: OpenTransaction, backlog: Backlog, event: AuditEvent, queued: Queued
) -> tuple[str, ...]:
    """Queue the deliveries of an event; return the names of their endpoints. `queued` counts them."""
    kinds = kinds_of(event) if backlog.endpoints else ()
    if not kinds:
        return ()
    moment = milliseconds(event.timestamp)
    return queue_deliveries(
        connection, backlog, queued, event.event_id or "", kinds, moment,
        lambda kind: body_of(event, kind, backlog.version),
    )  # fmt: skip


def queue_deliveries(
    connection: OpenTransaction, backlog: Backlog, queued: Queued, named: str, kinds: Sequence[str], moment: int,
    body: Callable[[str], str],
) -> tuple[str, ...]:  # fmt: skip
    """Queue what happened at `moment` (milliseconds) for each endpoint that asked for one of these kinds, the most
    special first; names of those endpoints."""
    bodies: dict[str, str] = {}
    told = []
    for endpoint in backlog.endpoints:
        kind = next((kind for kind in kinds if kind in endpoint.events), None)
        if kind is None or not backlog.has_room(endpoint.name, queued):
            continue
        if kind not in bodies:
            bodies[kind] = body(kind)
        row = (named, kind, endpoint.name, moment, bodies[kind])
        connection.execute(_DELIVERY, row)
        told.append(endpoint.name)
    return tuple(told)
