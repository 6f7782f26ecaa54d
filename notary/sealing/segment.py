"""Writes a sealed segment: a SQLite file of the ledger's own tables, with the rows between two cuts.

It carries the tiles that its tree needs, the checkpoint that it ends with and its cosignatures, and the public keys of
receipts and checkpoints. Guarantees that a file with the segment's name is whole: it was flushed, and read back by the
walk that checks ledgers, before it got its name.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ipc.evidence.events import INTENT_VERIFICATION
from ipc.evidence.unfinished_segments import forget_unfinished
from ipc.process.private_files import sync_folder, write_private
from notary.backends.sqlite import connect
from notary.database import OpenTransaction
from notary.ledger import kept_values, schema
from notary.ledger.cut import BEGINNING, END, Cut, read_cut, write_cut
from notary.ledger.encrypted_values import ValueOpener
from notary.ledger.head import write_head
from notary.ledger.leaves import INTENT_COLUMNS
from notary.reading.audit import Findings, check, open_read_only
from notary.reading.ends import RAISING, epoch_raised
from notary.reading.kept_checkpoints import keys_by_name
from notary.reading.verify import CHUNK, EVENT_COLUMNS, Walk
from notary.sealing.choosing import ChosenCut
from notary.signing.receipt_keys import ReceiptKeys
from notary.tree.merkle import HASH_BYTES
from notary.tree.tiles import TILE_BITS, TILE_HASHES, Tree

KEYS: Final = "segment_keys"
"""In `meta`: the public keys that a segment carries."""
_TABLES: Final = (
    ("intents", ", ".join(("seq", *INTENT_COLUMNS, "leaf"))),
    ("receipts", "seq, receipt_id, approval_id, bytes"),
)
_KEPT: Final = f"SELECT {kept_values.COLUMNS} FROM kept_values WHERE key = ? AND seq <= ?"  # noqa: S608 - columns
_EVENTS: Final = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608
_TILES: Final = (
    "SELECT level, number, hashes FROM tiles WHERE (level > 0 OR number >= ?) AND number <= ? ORDER BY level, number"
)


class CarriedKeys(msgspec.Struct, frozen=True):
    """Public keys: the set of receipt keys, and verifier keys of checkpoints."""

    receipts: dict[str, Any]
    checkpoints: list[str]


class NotSealed(Exception):
    """The ledger is not sealed and not changed. The text is a sentence for people, with its mend."""


class WrittenSegment(NamedTuple):
    """A segment in its place. `end` has its digest."""

    path: Path
    end: Cut
    findings: Findings


def write_segment(
    ledger: OpenTransaction, folder: Path, beginning: Cut, chosen: ChosenCut, keys: CarriedKeys
) -> WrittenSegment:  # fmt: skip
    """Write the segment between these cuts. Raises NotSealed, OSError, sqlite3.Error."""
    name = f"segment-{beginning.leaves:012d}-{chosen.size:012d}.sqlite3"
    target, made = folder / name, folder / f".{name}.partial"
    _forget_unfinished(folder, ledger, beginning)
    write_private(made, b"")
    try:
        with closing(connect(made, writes=True)) as file:
            end = _copy(ledger, file, beginning, chosen, keys, name)
        end = msgspec.structs.replace(end, digest=digest_of(made))
        findings = read_back(made, keys)
        if findings.broken is not None:
            raise NotSealed(f"the range does not verify: {findings.broken.reason}. gateway ledger verify says where")
        _flush(made)
        made.rename(target)
        sync_folder(folder)
    finally:
        made.unlink(missing_ok=True)
    return WrittenSegment(target, end, findings)


def read_back(file: Path, keys: CarriedKeys) -> Findings:
    """Check a segment with these keys. Raises CannotCheck."""
    with closing(open_read_only(file)) as segment:
        signers = keys_by_name(keys.checkpoints)
        return check(segment, ReceiptKeys(keys.receipts), lambda *_: None, (), signers, is_segment=True)


def digest_of(file: Path) -> str:
    """`sha256:<hex>` of a file."""
    with file.open("rb") as content:
        return f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"


def _copy(
    ledger: OpenTransaction, file: sqlite3.Connection, beginning: Cut, chosen: ChosenCut, keys: CarriedKeys, name: str
) -> Cut:  # fmt: skip
    file.execute("PRAGMA journal_mode=DELETE")
    file.execute("BEGIN IMMEDIATE")
    schema.prepare(file)
    end, ended = _copy_events(ledger, file, beginning, chosen)
    for table, columns in _TABLES:
        last = chosen.intents if table == "intents" else chosen.events
        first = beginning.intents if table == "intents" else beginning.events
        _insert(file, table, columns, _in_chunks(ledger, table, columns, first, last))
    _copy_tree(ledger, file, beginning.leaves, chosen)
    root = Tree(file).root(chosen.size).hex()
    opened = beginning.open + (chosen.intents - beginning.intents) - ended
    end = msgspec.structs.replace(end, root=root, open=opened, segment=name)
    write_cut(file, BEGINNING, beginning)
    write_cut(file, END, end)
    write_head(file, end.head)
    (ledger_id,) = ledger.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
    file.execute("UPDATE meta SET value = ? WHERE key = 'ledger_id'", (ledger_id,))
    file.execute("UPDATE epochs SET epoch = ?", (end.epoch,))
    file.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (KEYS, msgspec.json.encode(keys).decode()))
    file.execute("COMMIT")
    return end


def _copy_events(
    ledger: OpenTransaction, file: sqlite3.Connection, beginning: Cut, chosen: ChosenCut
) -> tuple[Cut, int]:
    """Copy the events. The cut behind them, as far as they tell, and how many of them end an intent."""
    walk, ended, epoch, until = Walk(beginning.head), 0, beginning.epoch, beginning.until
    while rows := ledger.execute(_EVENTS, (walk.head.seq, chosen.events)).fetchall():
        if (broken := walk.step(rows)) is not None:
            raise NotSealed(f"the chain is broken at {broken.event_id}: {broken.reason}. gateway ledger verify")
        for event, row in zip(walk.events, rows, strict=True):
            ended += event.intent_id is not None and event.event_type != INTENT_VERIFICATION
            if event.event_type in RAISING:
                epoch = max(epoch, epoch_raised(row[9]))
        until = walk.events[-1].timestamp
        _insert(file, "events", EVENT_COLUMNS, [rows])
        keys = [event.intent_id or event.event_id for event in walk.events if event.kept]
        _insert(file, "kept_values", kept_values.COLUMNS, [_kept_rows(ledger, key, chosen.events) for key in keys])
    return Cut(chosen.size, chosen.events, chosen.intents, walk.head.hash, epoch=epoch, until=until), ended


def _kept_rows(ledger: OpenTransaction, key: str, last: int) -> list[Sequence[Any]]:
    """The rows of a call with their values as they were kept: a segment has a file of its own."""
    opener = ValueOpener(ledger)
    return [
        row if row[4] is None else (*row[:4], *(opener.opened(row[4], row[5]) or (None, None)), row[6])
        for row in ledger.execute(_KEPT, (key, last)).fetchall()
    ]


def _copy_tree(ledger: OpenTransaction, file: sqlite3.Connection, first: int, chosen: ChosenCut) -> None:
    """Copy the tiles that lead from the first leaf to the root, cut to the checkpoint's size, and the checkpoint."""
    rows: list[tuple[int, int, bytes]] = []
    for level, number, hashes in ledger.execute(_TILES, (first // TILE_HASHES, chosen.size // TILE_HASHES)):
        hashes_in_all = chosen.size >> (TILE_BITS * level)
        kept = min(hashes_in_all - number * TILE_HASHES, TILE_HASHES)
        if kept > 0:
            rows.append((level, number, bytes(hashes)[: kept * HASH_BYTES]))
    _insert(file, "tiles", "level, number, hashes", [rows])
    _insert(file, "checkpoints", "size, time, note", [[(chosen.size, chosen.time, chosen.note)]])


def _in_chunks(
    ledger: OpenTransaction, table: str, columns: str, first: int, last: int
) -> Iterator[Sequence[Sequence[Any]]]:  # fmt: skip
    """Rows behind number `first` up to `last`: the ledger may be written to between two chunks."""
    statement = f"SELECT {columns} FROM {table} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608
    while chunk := ledger.execute(statement, (first, last)).fetchall():
        yield chunk
        first = chunk[-1][0]


def _insert(
    file: sqlite3.Connection, table: str, columns: str, chunks: Iterable[Sequence[Sequence[Any]]]
) -> None:  # fmt: skip
    places = ", ".join("?" * len(columns.split(", ")))
    for chunk in chunks:
        file.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", chunk)  # noqa: S608 - names of this file


def _forget_unfinished(folder: Path, ledger: OpenTransaction, beginning: Cut) -> None:
    """Remove a segment that was written before a crash and that the ledger does not know: it still has all of it. And
    remove unfinished files: the command has the folder to itself. Raises NotSealed for a segment of another ledger, and
    for one that has more than the ledger, which was put back then."""
    (ledger_id,) = ledger.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
    tree = Tree(ledger)
    forget_unfinished(folder)
    for path in folder.glob(f"segment-{beginning.leaves:012d}-*.sqlite3"):
        with closing(open_read_only(path)) as segment:
            (other,) = segment.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
            is_ours = other == ledger_id and read_cut(segment, BEGINNING).is_same_place(beginning)
            end = read_cut(segment, END)
        if not is_ours:
            raise NotSealed(f"{path} is of another ledger: name another folder")
        if tree.size < end.leaves or tree.root(end.leaves).hex() != end.root:
            raise NotSealed(f"{path} has events that this ledger lacks: keep it, and name another folder")
        path.unlink()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
