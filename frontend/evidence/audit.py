"""The offline check of a whole ledger file: chain, receipts, intents, and the file itself.

What an auditor wants to know beyond the chain: that every receipt which an event names is there, says the same, and
carries a signature by a listed key; that every intent is resolved or shown as unresolved. Reads one snapshot, once,
with constant memory. Never writes to the file, never asks the service.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from frontend.evidence.receipts import Receipt, decode_receipt
from frontend.evidence.schema import SCHEMA_VERSION, read_head, schema_version
from frontend.evidence.signing import ReceiptKeys
from frontend.evidence.verify import EVENT_COLUMNS, Break, Walk, is_damage
from frontend.stores.database import file_uri

_ROWS = f"""
SELECT {EVENT_COLUMNS}, receipts.receipt_id, receipts.approval_id, receipts.bytes
FROM events LEFT JOIN receipts USING (seq) ORDER BY events.seq
"""  # noqa: S608 - names of columns
_EVENT_WIDTH = 10

SIGNATURE_PROBLEMS = {
    "unsigned": "has no signature",
    "unknown_kid": "is signed by a key that the key file does not list",
    "signature_invalid": "does not have the content that was signed",
}


class CannotCheck(Exception):
    """There is nothing to check: no such file, no ledger, not readable. A sentence for people."""


class _Names(msgspec.Struct):
    receipt_id: str | None = None
    intent_id: str | None = None
    approval_id: str | None = None


_names_of = msgspec.json.Decoder(_Names).decode


@dataclass(slots=True)
class Findings:
    """What the check has seen. `broken` is the first thing that does not fit, `also` what else was found."""

    events: int = 0
    receipts: int = 0
    verified: int = 0
    unresolved: int = 0
    broken: Break | None = None
    also: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Nothing was found."""
        return self.broken is None and not self.also


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a ledger without changing it; a copy without its `-wal` is fine. Raises CannotCheck."""
    if not path.is_file():
        raise CannotCheck(f"{path}: no such file.")
    wal = path.with_name(path.name + "-wal")
    # Without a WAL beside it nobody has the file open, and SQLite need not create the files with which it would share
    # it; they could not be created on a read-only medium.
    uri = file_uri(path, "ro") if wal.exists() else file_uri(path, "ro", immutable="1")
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5)
        try:
            version = schema_version(connection)
        except sqlite3.Error:
            connection.close()
            raise
    except sqlite3.OperationalError as error:
        raise CannotCheck(f"{path}: cannot be read ({error}). Copy it and its -wal where you can write.") from None
    except sqlite3.DatabaseError as error:
        raise CannotCheck(f"{path}: is not a ledger ({error}).") from None
    if version != SCHEMA_VERSION:
        connection.close()
        raise CannotCheck(f"{path}: is not a ledger that this version knows.")
    return connection


def check(connection: sqlite3.Connection, keys: ReceiptKeys, progress: Callable[[int, int], None]) -> Findings:
    """Check everything. `progress` hears events done and events in all."""
    findings = Findings()
    try:
        connection.execute("BEGIN")
        _check_content(connection, keys, findings, progress)
        if findings.is_whole:
            _check_structure(connection, findings)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise CannotCheck(f"the file cannot be read to its end ({error}).") from None
        findings.also.append(f"the file is damaged after event number {findings.events}: {error}")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return findings


def neighbours(connection: sqlite3.Connection, seq: int) -> list[tuple[int, str, bytes]]:
    """(number, id, stored bytes) of an event and those next to it."""
    rows = connection.execute(
        "SELECT seq, event_id, bytes FROM events WHERE seq IN"
        " (SELECT max(seq) FROM events WHERE seq < ?1 UNION SELECT ?1 UNION SELECT min(seq) FROM events WHERE seq > ?1)"
        " ORDER BY seq",
        (seq,),
    )
    return [(number, str(event_id), _as_bytes(stored)) for number, event_id, stored in rows]


def _check_content(
    connection: sqlite3.Connection, keys: ReceiptKeys, findings: Findings, progress: Callable[[int, int], None]
) -> None:
    head = read_head(connection)
    total = head.seq if head else 0
    walk = Walk()
    resolved = 0

    def rows() -> Iterator[tuple[Any, ...]]:
        # The walk takes an event from here only after the one before it was found to fit.
        nonlocal resolved
        before: tuple[Any, ...] | None = None
        for row in connection.execute(_ROWS):
            if before is not None:
                resolved += _check_receipt(before, keys, findings)
            findings.events = row[0] - 1
            progress(findings.events, total)
            yield row[:_EVENT_WIDTH]
            if findings.broken is not None:
                return
            before = row
        if before is not None:
            resolved += _check_receipt(before, keys, findings)

    broken = walk.step(rows())
    findings.broken = findings.broken or broken or walk.end(head)
    findings.events = walk.head.seq
    progress(findings.events, total)
    if findings.broken is None:
        _check_intents(connection, findings, resolved)
