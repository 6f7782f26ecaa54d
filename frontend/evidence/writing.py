"""What the SQLite ledger writes: one unit of intents and events, in one transaction, on one chain.

Everything that can be computed before is computed by the waiting task (`prepared`); the writing thread reads the head,
links, inserts, and moves the head once for the whole unit. An operation that is refused leaves no trace in the others.
What the outbox is asked to do in the same unit comes after it (frontend/evidence/deliveries.py).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from frontend.evidence import deliveries
from frontend.evidence.events import AuditEvent, OpenEvent, event_hash, milliseconds, open_event
from frontend.evidence.ledger import (
    AlreadyRecorded,
    EvidenceRefused,
    GrantConsumed,
    Intent,
    LedgerUnavailable,
    OutboxRow,
)
from frontend.evidence.receipts import Receipt, encode_receipt
from frontend.evidence.schema import Head, read_head, write_head
from frontend.stores.database import DatabaseGone

Row = TypeVar("Row")

_INTENTS = (
    "INSERT INTO intents (intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module,"
    " plan_hash, approval_id)"
)
_UNRESOLVED = "INSERT INTO unresolved (intent_id, seq)"
_EVENTS = (
    "INSERT INTO events (seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes)"
)
_RECEIPTS = "INSERT INTO receipts (seq, receipt_id, approval_id, bytes)"
_OUTBOX = "INSERT INTO outbox (event_id, kind, endpoint, due, payload)"
# Something else each time: SQLite does not write a page that stays as it is.
_PROBE = "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', hex(randomblob(8)))"
ROWS_AT_ONCE = 32
"""Rows of one statement: few enough that the texts of all sizes stay prepared."""


class Begin(msgspec.Struct, frozen=True):
    """Write an intent and consume its grant."""

    row: tuple[str | None, ...]


class Record(msgspec.Struct, frozen=True):
    """Write one event with what belongs to it. `columns` are those of the event between seq and bytes."""

    event: OpenEvent
    columns: tuple[str | int | None, ...]
    receipt: tuple[str, str | None, bytes] | None
    outbox: tuple[tuple[str, str, str, int, str], ...]
    intent_id: str | None


class Probe(msgspec.Struct, frozen=True):
    """Come as far as a write does; with `writes`, make one that means nothing, as far as the disk."""

    writes: bool


Operation = Begin | Record | Probe | deliveries.Task
Outcome = deliveries.Outcome
"""What an operation answers: None for evidence."""


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
    time = milliseconds(event.timestamp)
    return Record(
        event=open_event(event),
        columns=(
            event.event_id, event.event_type, time, event.trace_id, event.principal, event.session_id, event.action_id,
            event.decision,
        ),
        receipt=None if receipt is None else (receipt.receipt_id, event.approval_id, encode_receipt(receipt)),
        outbox=tuple(_prepared_delivery(row, event.event_id, time) for row in outbox),
        intent_id=intent_id,
    )  # fmt: skip


def _prepared_delivery(row: OutboxRow, event_id: str, due: int) -> tuple[str, str, str, int, str]:
    if row.event_id != event_id:
        raise ValueError("a delivery must name its event")
    # What can't be written must not be found out where it would fail those that share the transaction.
    row.payload.encode()
    return row.event_id, row.kind, row.endpoint, due, row.payload


def write_together(
    connection: sqlite3.Connection, operations: Sequence[Operation]
) -> list[Outcome | LedgerUnavailable]:
    """Perform all or none, inside the transaction that is open; what each answers.

    Every statement hands the interpreter to another thread and has to get it back: a unit is written in a few
    statements of many rows. Raises EvidenceRefused when one of the operations is refused; what was written before it
    is for the caller to undo.
    """
    head = read_head(connection)
    if head is None:
        raise DatabaseGone("the head of the chain is gone")
    intents = [operation.row for operation in operations if isinstance(operation, Begin)]
    records = [operation for operation in operations if isinstance(operation, Record)]
    if intents:
        _open_intents(connection, intents)
    if records:
        _write_records(connection, records, head)
    if any(isinstance(operation, Probe) and operation.writes for operation in operations):
        connection.execute(_PROBE)
    tasks = [operation for operation in operations if isinstance(operation, deliveries.Task)]
    if not tasks:
        return [None] * len(operations)
    done = iter(deliveries.perform(connection, tasks))
    return [next(done) if isinstance(operation, deliveries.Task) else None for operation in operations]


def write_apart(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[Outcome | Exception]:
    """Perform each by itself, inside the transaction that is open. An EvidenceRefused stands in the place of its
    operation, which leaves no trace in the others."""
    outcomes = list[Outcome | Exception]()
    for operation in operations:
        connection.execute("SAVEPOINT operation")
        try:
            outcomes += write_together(connection, (operation,))
        except EvidenceRefused as refused:
            connection.execute("ROLLBACK TO operation")
            outcomes.append(refused)
        connection.execute("RELEASE operation")
    return outcomes


def _open_intents(connection: sqlite3.Connection, rows: list[tuple[str | None, ...]]) -> None:
    try:
        # Nobody else writes while this transaction is open, and rows without a number get the next ones in turn.
        last = _insert(connection, _INTENTS, rows)
        first = last - len(rows) + 1
        _insert(connection, _UNRESOLVED, [(row[0], first + index) for index, row in enumerate(rows)])
    except sqlite3.IntegrityError:
        raise GrantConsumed("the grant has been used, or the intent is open already") from None


def _write_records(connection: sqlite3.Connection, records: list[Record], head: Head) -> None:
    resolved = [record.intent_id for record in records if record.intent_id is not None]
    if _resolve(connection, resolved) != len(resolved):
        raise AlreadyRecorded("the intent is not open")
    events, receipts = [], []
    outbox: list[tuple[str, str, str, int, str]] = []
    for record in records:
        stored = record.event.closed(head.hash)
        head = Head(head.seq + 1, event_hash(stored))
        events.append((head.seq, *record.columns, stored))
        if record.receipt is not None:
            receipts.append((head.seq, *record.receipt))
        outbox += record.outbox
    _insert(connection, _EVENTS, events)
    try:
        _insert(connection, _RECEIPTS, receipts)
    except sqlite3.IntegrityError:
        raise AlreadyRecorded("the receipt is in the ledger already") from None
    _insert(connection, _OUTBOX, outbox)
    write_head(connection, head)


def _resolve(connection: sqlite3.Connection, intent_ids: list[str]) -> int:
    """How many of them were open."""
    found = 0
    for some in _pieces(intent_ids):
        marks = ", ".join("?" * len(some))
        found += connection.execute(f"DELETE FROM unresolved WHERE intent_id IN ({marks})", some).rowcount  # noqa: S608
    return found


def _insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]]) -> int:
    """Insert the rows; the number of the last one."""
    last = 0
    for some in _pieces(rows):
        row = f"({', '.join('?' * len(some[0]))})"
        values = f"{into} VALUES {', '.join([row] * len(some))}"
        last = connection.execute(values, [value for one in some for value in one]).lastrowid or 0
    return last


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    return (rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE))
