"""The offline check of a whole ledger file: chain, receipts, intents, and the file itself.

What an auditor wants to know beyond the chain: that every receipt which an event names is there, says the same, and
carries a signature by a listed key; that every intent is resolved or shown as unresolved. Reads each row once, with
constant memory. Never writes to the file, never asks the service.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ipc.canonical import sha256_hex
from notary.backends.sqlite import DatabaseGone, file_uri
from notary.ledger.head import read_head
from notary.ledger.journal import Entry
from notary.ledger.receipts import decode_receipt
from notary.ledger.schema import KNOWN_VERSIONS, WITHOUT_TREE, schema_version
from notary.ledger.settling import head_with, unsettled
from notary.reading.kept_checkpoints import Kept, problem_of
from notary.reading.tree_walk import Misplaced, TreeWalk
from notary.reading.verify import CHUNK, EVENT_COLUMNS, Break, Walk, is_damage
from notary.signing.receipt_keys import ReceiptKeys

_ROWS = f"""
SELECT {EVENT_COLUMNS}, receipts.receipt_id, receipts.approval_id, receipts.bytes
FROM events LEFT JOIN receipts USING (seq) WHERE events.seq >= ? ORDER BY events.seq LIMIT ?
"""  # noqa: S608 - names of columns
_ROWS_WITHOUT_TREE = _ROWS.replace("events.leaf", "NULL")
_EVENT_WIDTH = 11

SIGNATURE_PROBLEMS = {
    "unsigned": "has no signature",
    "unknown_kid": "is signed by a key that the key file does not list",
    "signature_invalid": "does not have the content that was signed",
}


class CannotCheck(Exception):
    """Nothing can be said: no such file, no ledger, not readable. The text is a sentence for people."""


class _Names(msgspec.Struct):
    receipt_id: str | None = None
    receipt_hash: str | None = None
    intent_id: str | None = None
    approval_id: str | None = None


_names_of = msgspec.json.Decoder(_Names).decode


@dataclass(slots=True)
class Findings:
    """What the check has seen. `receipts` have a signature that holds; `broken` is the first thing that is wrong."""

    events: int = 0
    receipts: int = 0
    unresolved: int = 0
    continued: int = 0
    """Checkpoints that were kept, and that it continues."""
    broken: Break | None = None


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a ledger without changing it; a copy without its `-wal` is fine. Raises CannotCheck."""
    if not path.is_file():
        raise CannotCheck(f"{path} does not exist.")
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
        raise CannotCheck(f"{path} cannot be read: {error}. Copy it and its -wal to where you can write.") from None
    except sqlite3.DatabaseError as error:
        raise CannotCheck(f"{path} is not a ledger: {error}.") from None
    if version not in KNOWN_VERSIONS:
        connection.close()
        raise CannotCheck(f"{path} is not a ledger that this version knows.")
    return connection


def check(
    connection: sqlite3.Connection, keys: ReceiptKeys, progress: Callable[[int, int], None], kept: Sequence[Kept] = ()
) -> Findings:  # fmt: skip
    """Check everything, up to the first thing that does not fit, and that the ledger continues the checkpoints that
    were kept. `progress` hears events done and events in all.

    A gateway may go on writing to the file meanwhile: what it appends is checked too. Raises CannotCheck.
    """
    if kept and schema_version(connection) in WITHOUT_TREE:
        raise CannotCheck("The ledger is from before there was a tree: it can't be compared with checkpoints.")
    audit = _Audit(connection, keys, kept)
    try:
        head = read_head(connection)
        total = head.seq if head else 0
        while audit.read(CHUNK):
            progress(audit.findings.events, total)
        audit.findings.broken = audit.findings.broken or audit.end()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise CannotCheck(f"The file could not be read to its end: {error}.") from None
        audit.findings.broken = audit.findings.broken or audit.damage(error)
    return audit.findings


def neighbours(connection: sqlite3.Connection, seq: int) -> list[tuple[int, bytes]]:
    """(number, stored bytes) of an event and those next to it, as far as they can be read."""
    try:
        rows = connection.execute(
            "SELECT seq, CAST(bytes AS BLOB) FROM events WHERE seq = ?1"
            " OR seq = (SELECT max(seq) FROM events WHERE seq < ?1)"
            " OR seq = (SELECT min(seq) FROM events WHERE seq > ?1) ORDER BY seq",
            (seq,),
        )
        return rows.fetchall()
    except sqlite3.DatabaseError:
        return []


class _Audit:
    """One check on its way along the file."""

    def __init__(self, connection: sqlite3.Connection, keys: ReceiptKeys, kept: Sequence[Kept]) -> None:
        self.findings = Findings()
        self._kept = kept
        self._connection = connection
        self._keys = keys
        self._walk = Walk()
        self._tree = None if schema_version(connection) in WITHOUT_TREE else TreeWalk()
        self._rows = _ROWS if self._tree else _ROWS_WITHOUT_TREE
        self._resolved = 0

    def read(self, limit: int) -> bool:
        """Check the next events with what belongs to them. False at the end, or when something does not fit."""
        rows = self._connection.execute(self._rows, (self._walk.next_seq, limit)).fetchall()
        has_more = self._check(rows)
        if self._tree is not None and self.findings.broken is None:
            self.findings.broken = _problem_of(partial(self._tree.step, self._connection, rows))
            return self.findings.broken is None and (has_more or self._tree.has_more)
        return has_more

    def _check(self, rows: list[tuple[Any, ...]]) -> bool:
        before = self._walk.head.seq
        broken = self._walk.step(row[:_EVENT_WIDTH] for row in rows)
        for row in rows[: self._walk.head.seq - before]:
            self.findings.events = row[0]
            if (problem := self._problem_of_receipt(row)) is not None:
                broken = Break(row[1], row[0], problem)
                break
        self.findings.broken = broken
        return bool(rows) and broken is None

    def end(self) -> Break | None:
        """Check what was appended meanwhile, the head and the counts, all in one snapshot."""
        self._connection.execute("BEGIN")
        try:
            while self.read(CHUNK):
                pass
            return self.findings.broken or self._end_of_all()
        finally:
            self._connection.execute("ROLLBACK")

    def _end_of_all(self) -> Break | None:
        try:
            entries = unsettled(self._connection)
        except DatabaseGone as error:
            return Break(self._walk.last_id, self._walk.head.seq or None, str(error))
        self._check(_rows_of(entries))
        return (
            self.findings.broken
            or self._walk.end(head_with(self._connection, entries))
            or self._problem_of_tree(entries)
            or self._problem_of_kept(entries)
            or self._problem_of_counts(entries)
            or self._problem_of_structure()
        )

    def _problem_of_tree(self, entries: list[Entry]) -> Break | None:
        return None if self._tree is None else _problem_of(partial(self._tree.end, self._connection, entries))

    def _problem_of_kept(self, entries: list[Entry]) -> Break | None:
        problem = problem_of(self._connection, entries, self._kept) if self._kept else None
        self.findings.continued = len(self._kept)
        return None if problem is None else Break(None, None, problem)

    def damage(self, error: sqlite3.DatabaseError) -> Break:
        """What to say when a page can't be read."""
        return Break(self._walk.last_id, self._walk.head.seq or None, f"the file is damaged after it: {error}")

    def _problem_of_receipt(self, row: tuple[Any, ...]) -> str | None:
        names = _names_of(row[9])
        self._resolved += names.intent_id is not None
        receipt_id, approval_id, stored = row[_EVENT_WIDTH:]
        if receipt_id != names.receipt_id:
            return f"it names the receipt {names.receipt_id}, and the one beside it is {receipt_id}"
        if receipt_id is None:
            return None
        self.findings.receipts += 1
        try:
            receipt = decode_receipt(stored)
        except (ValueError, TypeError):
            return f"the bytes of its receipt {receipt_id} are not those of a receipt"
        if receipt.receipt_id != receipt_id or approval_id != names.approval_id:
            return f"the columns of its receipt {receipt_id} do not say what the receipt and the event say"
        status = self._keys.status(receipt)
        if status != "verified":
            return f"its receipt {receipt_id} {SIGNATURE_PROBLEMS[status]}"
        if names.receipt_hash is not None and names.receipt_hash != sha256_hex(stored):
            return f"its receipt {receipt_id} is not the one whose hash it has"
        return None

    def _problem_of_counts(self, entries: list[Entry]) -> Break | None:
        receipts, intents, unresolved = (
            self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - names in this line
            for table in ("receipts", "intents", "unresolved")
        )
        begun = sum(len(entry.intents) for entry in entries)
        receipts += sum(len(entry.receipts) for entry in entries)
        intents += begun
        unresolved += begun - sum(len(entry.resolved) for entry in entries)
        self.findings.unresolved = unresolved
        if receipts != self.findings.receipts:
            return Break(None, None, f"receipts that belong to no event: {receipts - self.findings.receipts}")
        if intents != self._resolved + unresolved:
            return Break(
                None, None, f"{intents} intents are there, {self._resolved} resolved by events and {unresolved} open"
            )
        return None

    def _problem_of_structure(self) -> Break | None:
        # An index that leaves out a row hides it from every query, and from no walk.
        (answer,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        return None if answer == "ok" else Break(None, None, f"the file's own structure is damaged: {answer}")


def _problem_of(step: Callable[[], object]) -> Break | None:
    """What a step along the tree finds wrong."""
    try:
        step()
    except Misplaced as error:
        return Break(error.name, error.seq, error.reason)
    except DatabaseGone as error:
        return Break(None, None, str(error))
    return None


def _rows_of(entries: list[Entry]) -> list[tuple[Any, ...]]:
    """Events that are not in their table yet, each beside its receipt."""
    receipts = {row[0]: row[1:] for entry in entries for row in entry.receipts}
    return [(*row, None, *receipts.get(row[0], (None, None, None))) for entry in entries for row in entry.events]
