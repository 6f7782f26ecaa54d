"""What the SQLite ledger writes: one unit of intents and events, in one transaction, on one chain.

Everything that can be computed before is computed by the waiting task (`prepared`); the writing thread reads the head,
links, inserts, and moves the head once for the whole unit. An operation that is refused leaves no trace in the others.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from frontend.evidence.events import AuditEvent, OpenEvent, event_hash, milliseconds, open_event
from frontend.evidence.ledger import AlreadyRecorded, EvidenceRefused, GrantConsumed, Intent, OutboxRow
from frontend.evidence.receipts import Receipt, encode_receipt
from frontend.evidence.schema import Head, read_head, write_head
from frontend.stores.database import DatabaseGone

_INSERT_INTENT = """
INSERT INTO intents (intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module, plan_hash,
    approval_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_OPEN_INTENT = "INSERT INTO unresolved (intent_id, seq) VALUES (?, ?)"
_RESOLVE_INTENT = "DELETE FROM unresolved WHERE intent_id = ?"
_INSERT_EVENT = """
INSERT INTO events (seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_RECEIPT = "INSERT INTO receipts (seq, receipt_id, approval_id, bytes) VALUES (?, ?, ?, ?)"
_INSERT_OUTBOX = "INSERT INTO outbox (event_id, kind, payload) VALUES (?, ?, ?)"
# Something else each time: SQLite does not write a page that stays as it is.
_PROBE = "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', hex(randomblob(8)))"


class Begin(msgspec.Struct, frozen=True):
    """Write an intent and consume its grant."""

    row: tuple[str | None, ...]

    def write(self, connection: sqlite3.Connection, head: Head) -> Head:
        """Raises GrantConsumed."""
        try:
            cursor = connection.execute(_INSERT_INTENT, self.row)
            connection.execute(_OPEN_INTENT, (self.row[0], cursor.lastrowid))
        except sqlite3.IntegrityError:
            raise GrantConsumed("the grant has been used, or the intent is open already") from None
        return head


class Record(msgspec.Struct, frozen=True):
    """Write one event with what belongs to it. `columns` are those of the event between seq and bytes."""

    event: OpenEvent
    columns: tuple[str | int | None, ...]
    receipt: tuple[str, str | None, bytes] | None
    outbox: tuple[tuple[str, str, str], ...]
    intent_id: str | None

    def write(self, connection: sqlite3.Connection, head: Head) -> Head:
        """The head after this event. Raises AlreadyRecorded."""
        seq = head.seq + 1
        stored = self.event.closed(head.hash)
        if self.intent_id is not None and connection.execute(_RESOLVE_INTENT, (self.intent_id,)).rowcount != 1:
            raise AlreadyRecorded("the intent is not open")
        connection.execute(_INSERT_EVENT, (seq, *self.columns, stored))
        if self.receipt is not None:
            try:
                connection.execute(_INSERT_RECEIPT, (seq, *self.receipt))
            except sqlite3.IntegrityError:
                raise AlreadyRecorded("the receipt is in the ledger already") from None
        if self.outbox:
            connection.executemany(_INSERT_OUTBOX, self.outbox)
        return Head(seq, event_hash(stored))


class Probe(msgspec.Struct, frozen=True):
    """Come as far as a write does; with `writes`, make one that means nothing, as far as the disk."""

    writes: bool

    def write(self, connection: sqlite3.Connection, head: Head) -> Head:
        """Change a row of no meaning, or nothing: then there is nothing to commit either."""
        if self.writes:
            connection.execute(_PROBE)
        return head


Operation = Begin | Record | Probe


def prepared_intent(intent: Intent) -> Begin:
    """An intent as its row. Raises ValueError when its time is not in the one form."""
    milliseconds(intent.dispatched_at)
    return Begin(
        (
            intent.intent_id, intent.trace_id, intent.action_id, intent.principal, intent.dispatched_at,
            intent.grant_id, intent.provider_module, intent.plan_hash, intent.approval_id,
        )
    )  # fmt: skip


def prepared_record(
    receipt: Receipt | None, event: AuditEvent, outbox: tuple[OutboxRow, ...], intent_id: str | None
) -> Record:
    """An event and what belongs to it as rows. Raises ValueError when they do not belong together."""
    if receipt is not None and receipt.receipt_id != event.receipt_id:
        raise ValueError("the event must name its receipt")
    if intent_id != event.intent_id:
        raise ValueError("the event must name the intent that it resolves, and no other")
    return Record(
        event=open_event(event),
        columns=(
            event.event_id, event.event_type, milliseconds(event.timestamp), event.trace_id, event.principal,
            event.session_id, event.action_id, event.decision,
        ),
        receipt=None if receipt is None else (receipt.receipt_id, event.approval_id, encode_receipt(receipt)),
        outbox=tuple((row.event_id, row.kind, row.payload) for row in outbox),
        intent_id=intent_id,
    )  # fmt: skip


def write_unit(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[Exception | None]:
    """Perform all, inside the transaction that is open. An EvidenceRefused stands in the place of its operation."""
    found = read_head(connection)
    if found is None:
        raise DatabaseGone("the head of the chain is gone")
    head, outcomes = found, list[Exception | None]()
    for operation in operations:
        connection.execute("SAVEPOINT operation")
        try:
            head = operation.write(connection, head)
            outcomes.append(None)
        except EvidenceRefused as refused:
            connection.execute("ROLLBACK TO operation")
            outcomes.append(refused)
        connection.execute("RELEASE operation")
    if head is not found:
        write_head(connection, head)
    return outcomes
