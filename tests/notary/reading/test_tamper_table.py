"""Every column, row and file of a state folder changed, and the verdict of each check: the table of docs/evidence.md.

That table says of each row whether `gateway ledger verify` finds it, alone, with the log's key and with a checkpoint
that was kept, and with which code a gateway starts on it. Here every row has its cases, and every column of every table
is one of them: a column that is added without naming here the checks that find its change fails.
"""

import os
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from ipc.exits import Exit
from notary.ledger.settling import unsettled
from tests.notary.reading.tamper_changes import (
    change_event,
    change_intent,
    change_journal,
    change_line,
    change_receipt,
    compute_anew,
    compute_anew_and_remove,
    cut_what_waits,
    deliver_twice,
    exchange_own_key,
    exchange_receipt_key,
    give_a_place_too_many,
    give_other_keys,
    hide,
    put_back,
    put_back_whole,
    put_early_file,
    say_that_an_ended_one_waits,
    shorten,
    sign_another_receipt,
    sql,
    take_places,
)
from tests.notary.reading.tampering import EPOCH, Folder, killed, recorded
from tests.notary.running import ROOT

EVENT = "a column or a byte of an event"
EVENT_ROWS = "an event deleted from the middle, inserted, or exchanged with another"
INTENT = "a column or a byte of an intent"
INTENT_ROWS = "an intent deleted from the middle, inserted, or exchanged with another"
RECEIPT = "a column or a byte of a receipt"
RECEIPT_ROWS = "a receipt deleted, inserted, or exchanged with another that is valid"
WAITS = "an intent said to wait that does not, or the reverse"
TILES = "hashes of the tree"
NOTE = "a checkpoint in the ledger: its columns, its text"
NOTE_SIGNATURE = "a checkpoint in the ledger: its signature"
NOTE_GONE = "a checkpoint in the ledger deleted, and not the newest"
HEAD = "the end of the chain as the ledger keeps it"
KEPT_GONE = "what the ledger keeps of its chain, journal or version: gone, or of before"
UNKNOWN = "what the ledger says that it is"
HISTORY = "what the ledger says of the time before it had a tree"
EPOCH_LOWERED, EPOCH_RAISED = "the epoch lowered", "the epoch raised"
PLANTED, HIDDEN = "a trigger or a view planted", "an index that leaves out a row"
TAIL = "the last events deleted"
FORGED = "everything computed anew: chain, tree, no checkpoints"
FORGED_FILE = "everything computed anew, and the file `checkpoints` removed"
EARLIER = "an earlier copy of the ledger put back"
EARLIER_FOLDER = "an earlier copy of the whole state directory put back"
FILE = "the file `checkpoints` removed, cut, or its last line changed"
FILE_LINE = "an earlier line of the file `checkpoints` changed"
OWN_KEY = "the gateway's checkpoint key exchanged"
RECEIPT_KEYS = "a key of receipts exchanged in the set that is given to the check"
IN_JOURNAL = "an event or a receipt that lies in the journal alone"
INTENT_IN_JOURNAL = "an intent that lies in the journal alone"
UNCOMMITTED = "what no checkpoint commits to yet, cut off whole"
SPARE = "a page of the journal that holds nothing that waits"
NO_EVIDENCE = "proofs, budgets, quotas, approvals, deliveries, answers kept for a front, the ledger's own name"

OUTCOMES = {"found": Exit.CHECK_FAILED, "not found": Exit.OK, "nothing said": Exit.UNAVAILABLE}
STARTS = {"starts": Exit.OK, "exit 9": Exit.ROLLED_BACK, "exit 69": Exit.UNAVAILABLE}
DOCUMENT = (ROOT / "docs" / "evidence.md").read_text()
ROWS = {
    row[0]: tuple(row[1:])
    for line in DOCUMENT.splitlines()
    if len(row := [cell.strip() for cell in line.strip("|").split("|")]) == 5 and row[-1] in STARTS
}
"""Of the document: what was changed -> the check alone, with the log's key, with a kept checkpoint; the start."""
NEGATED = "-seq - 1"


class Case(NamedTuple):
    """A change of a column: the row of the document that it belongs to, and words of what is said."""

    row: str
    words: str = ""
    value: str = ""
    """SQL of the new value, where the usual one would not do."""


COLUMN = "does not say what the event says"
NOT_LEAF = "its bytes are not those of leaf"
COLUMNS: dict[str, dict[str, Case]] = {
    "events": {
        "seq": Case(EVENT, "event number 1 is missing before it", NEGATED),
        **{name: Case(EVENT, f"column {name} {COLUMN}") for name in (
            "event_id", "event_type", "time", "trace_id", "principal", "session_id", "action_id", "decision",
        )},
        "bytes": Case(EVENT, "are not those of an event", "x'7b7d'"),
        "leaf": Case(EVENT, "it has no place in the tree"),
    },
    "receipts": {
        "seq": Case(RECEIPT, "and the one beside it is None"),
        "receipt_id": Case(RECEIPT, "and the one beside it is "),
        "approval_id": Case(RECEIPT, "the columns of its receipt"),
        "bytes": Case(RECEIPT, "not have the content that was signed", "CAST(replace(bytes, 'finished_at\":\"2', "
                      "'finished_at\":\"1') AS BLOB)"),
    },
    "intents": {
        "seq": Case(INTENT, "intent number 1 is missing before it", NEGATED),
        **{name: Case(INTENT, NOT_LEAF) for name in (
            "intent_id", "trace_id", "action_id", "principal", "dispatched_at", "grant_id", "provider_module",
            "plan_hash", "approval_id", "grant_jws", "context",
        )},
        "leaf": Case(INTENT, "it has no place in the tree"),
    },
    "unresolved": {
        "intent_id": Case(WAITS, "no intent with its number has this id"),
        "seq": Case(WAITS, "no intent with its number has this id"),
    },
    "tiles": {
        "level": Case(TILES, "it has no place in the tree"),
        "number": Case(TILES, "tile 0 of level 0 is missing"),
        "hashes": Case(TILES, NOT_LEAF, "zeroblob(length(hashes))"),
    },
    "checkpoints": {
        "size": Case(NOTE, "does not say what its columns say"),
        "time": Case(NOTE, "does not say what its columns say"),
        "note": Case(NOTE, "makes no sense"),
    },
    "epochs": {"id": Case(NO_EVIDENCE), "epoch": Case(EPOCH_LOWERED, "it raised the epoch to 1", "0")},
    "journal": {"slot": Case(SPARE), "bytes": Case(SPARE)},
    "last_unit": {"id": Case(NO_EVIDENCE), "answers": Case(NO_EVIDENCE)},
    **{table: dict.fromkeys(names, Case(NO_EVIDENCE)) for table, names in {
        "proofs": ("bucket", "key", "expires_at"),
        "budgets": ("session_id", "max_calls", "remaining", "expires_at"),
        "quota_calls": ("principal", "minute", "calls"),
        "quota_holds": ("approval_id", "principal", "minute"),
        "quota_sessions": ("principal", "expires_at", "session_id", "epoch"),
        "approvals": (
            "seq", "approval_id", "session_id", "action_id", "request_hash", "state", "created_at", "expires_at",
            "body", "holder", "outcome", "principal", "epoch", "bytes", "summary",
        ),
        "outbox": ("seq", "event_id", "kind", "endpoint", "attempts", "due", "payload"),
        "given_up": ("seq", "event_id", "kind", "endpoint", "attempts", "at", "error", "payload"),
    }.items()},
    "meta": {
        "key": Case(KEPT_GONE, "does not say where its chain ends"),
        "value": Case(HEAD, "do not have the hash that", "replace(value, 'sha256:', 'sha256:0')"),
    },
}  # fmt: skip
META = {
    # key -> its value changed, its row gone
    "head": (COLUMNS["meta"]["value"], COLUMNS["meta"]["key"]),
    "settled": (Case(KEPT_GONE, "is missing before it", "0"), Case(KEPT_GONE, "the journal makes no sense")),
    "schema": (Case(KEPT_GONE, "which had no tree, and it has one", "4"), Case(UNKNOWN, "not a ledger")),
    "history": (Case(HISTORY, "it has no place in the tree", "'[1,0]'"), Case(HISTORY, "where its tree begins")),
    "ledger_id": (Case(NO_EVIDENCE), Case(NO_EVIDENCE)),
}  # fmt: skip
MIDDLE = "WHERE rowid = (SELECT rowid FROM {0} ORDER BY rowid LIMIT 1 OFFSET (SELECT count(*) / 2 FROM {0}))"
FIRST_OF = "WHERE {1} = (SELECT {1} FROM {0} ORDER BY {1} LIMIT 1)"
WITHOUT_ROWID = {
    "meta": "key", "budgets": "session_id", "proofs": "key", "unresolved": "intent_id", "quota_calls": "principal",
    "quota_holds": "approval_id", "quota_sessions": "principal",
}  # fmt: skip
USUAL = {
    "TEXT": "coalesce({0}, '') || 'x'", "INTEGER": "abs(coalesce({0}, 0)) + 1000", "REAL": "{0} + 1000",
    "BLOB": "CAST(substr({0}, 1, length({0}) / 2) || 'x' || substr({0}, length({0}) / 2 + 2) AS BLOB)",
}  # fmt: skip


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """What a gateway left that was stopped."""
    return recorded(tmp_path_factory.mktemp("recorded") / "state")


@pytest.fixture(scope="session")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """What a gateway left that was killed."""
    return killed(tmp_path_factory.mktemp("killed"))


@pytest.fixture
def folder(whole: Folder, tmp_path: Path) -> Folder:
    return whole.copy(tmp_path / "state")


@pytest.fixture
def left(torn: Folder, tmp_path: Path) -> Folder:
    return torn.copy(tmp_path / "left")


def agrees(folder: Folder, row: str, words: str = "") -> None:
    """The checks say what the document says of this row, and with these words."""
    verdicts = folder.judged()
    alone, with_key, with_kept, start = ROWS[row]
    expected = (OUTCOMES[alone], OUTCOMES[with_key], OUTCOMES[with_kept], STARTS[start])
    assert verdicts[:4] == expected, (row, verdicts)
    assert words in verdicts.words


def columns_of(folder: Folder) -> dict[str, dict[str, str]]:
    """Table -> column -> type."""
    tables = [str(name) for (name,) in folder.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        table: {
            str(name): str(kind) for name, kind in folder.rows(f"SELECT name, type FROM pragma_table_xinfo('{table}')")
        }
        for table in tables
    }


def where(table: str) -> str:
    """One row of a table, which is neither its first nor its last where it has more."""
    return FIRST_OF.format(table, WITHOUT_ROWID[table]) if table in WITHOUT_ROWID else MIDDLE.format(table)


def test_whoever_changes_nothing_is_not_accused(folder: Folder, left: Folder) -> None:
    for one in (folder, left):
        verdicts = one.judged()
        assert verdicts[:4] == (0, 0, 0, 0), verdicts
        assert " is intact: " in verdicts.words


def test_the_table_knows_every_table_and_every_column(whole: Folder) -> None:
    assert {table: set(columns) for table, columns in columns_of(whole).items()} == {
        table: set(columns) for table, columns in COLUMNS.items()
    }
    assert {key for (key,) in whole.rows("SELECT key FROM meta")} == set(META)


def test_there_is_something_to_change_in_every_table(whole: Folder) -> None:
    empty = {table for table in COLUMNS if not whole.rows(f"SELECT 1 FROM {table}")}
    assert empty == {"last_unit"}, "what a unit answers is in the journal, as a rule"


@pytest.mark.parametrize(("table", "column"), [
    (table, column) for table, columns in COLUMNS.items() for column in columns if table not in ("meta", "last_unit")
])  # fmt: skip
def test_a_column_that_was_changed(folder: Folder, table: str, column: str) -> None:
    case, kind = COLUMNS[table][column], columns_of(folder)[table][column]
    value = case.value or USUAL[kind].format(column)

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(f"UPDATE {table} SET {column} = {value} {where(table)}").rowcount == 1

    before = folder.ledger.read_bytes()
    folder.change(change)
    assert folder.ledger.read_bytes() != before
    agrees(folder, case.row, case.words)


@pytest.mark.parametrize("key", META)
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_value_that_the_ledger_keeps(folder: Folder, key: str, *, is_gone: bool) -> None:
    case = META[key][is_gone]
    set_value = f"UPDATE meta SET value = {case.value or USUAL['TEXT'].format('value')}"
    folder.change(lambda file: file.execute(f"{'DELETE FROM meta' if is_gone else set_value} WHERE key = ?", (key,)))
    agrees(folder, case.row, case.words)


ROWS_OF = {
    # table -> a row deleted, one inserted, two exchanged
    "events": (EVENT_ROWS, EVENT_ROWS, EVENT_ROWS), "intents": (INTENT_ROWS, INTENT_ROWS, INTENT_ROWS),
    "receipts": (RECEIPT_ROWS, RECEIPT_ROWS, RECEIPT_ROWS), "unresolved": (WAITS, WAITS, WAITS),
    "tiles": (TILES, TILES, TILES), "checkpoints": (NOTE_GONE, NOTE, NOTE), "journal": (SPARE, SPARE, SPARE),
    "epochs": (EPOCH_LOWERED, None, None), "meta": (None, NO_EVIDENCE, None), "last_unit": (None, NO_EVIDENCE, None),
    "proofs": (NO_EVIDENCE, NO_EVIDENCE, None), "quota_holds": (NO_EVIDENCE, NO_EVIDENCE, None),
    **dict.fromkeys(
        ("budgets", "quota_calls", "quota_sessions", "approvals", "outbox", "given_up"),
        (NO_EVIDENCE,) * 3,
    ),
}  # fmt: skip
"""None: there is one row, or a row is nothing but its key, or all are alike."""
DELETED, INSERTED, EXCHANGED = range(3)
ROW_CASES = [(table, kind) for table, rows in ROWS_OF.items() for kind, row in enumerate(rows) if row is not None]


def copied(connection: sqlite3.Connection, table: str, kinds: dict[str, str]) -> None:
    """A row once more, with a key and an id of its own."""
    key = next(iter(COLUMNS[table]))
    own = {key: f"-{key} - 1" if kinds[key] == "INTEGER" else USUAL["TEXT"].format(key)}
    own |= {name: USUAL["TEXT"].format(name) for name in ("intent_id", "receipt_id", "approval_id") if name in kinds}
    if table in ("tiles", "last_unit", "meta"):
        row = {"tiles": "0, 1, zeroblob(32)", "last_unit": "1, x'90'", "meta": "'other', 'x'"}[table]
        connection.execute(f"INSERT INTO {table} VALUES ({row})")
        return
    values = ", ".join(own.get(name, name) for name in kinds)
    connection.execute(f"INSERT INTO {table} SELECT {values} FROM {table} {where(table)}")


def exchanged(connection: sqlite3.Connection, table: str, kinds: dict[str, str]) -> None:
    """Two rows with one another's content; of tiles the first one's hashes turned round."""
    if table == "tiles":
        connection.execute("UPDATE tiles SET hashes = CAST(substr(hashes, 33) || substr(hashes, 1, 32) AS BLOB)")
        return
    key, *others = kinds
    rows = connection.execute(f"SELECT {key}, {', '.join(others)} FROM {table} ORDER BY {key} LIMIT 2 OFFSET "
                              f"max((SELECT count(*) / 2 FROM {table}) - 1, 0)").fetchall()  # fmt: skip
    connection.executemany(f"DELETE FROM {table} WHERE {key} = ?", [row[:1] for row in rows])
    (first, *one), (second, *other) = rows
    marks = ", ".join("?" * (1 + len(others)))
    into = f"INSERT INTO {table} ({key}, {', '.join(others)}) VALUES ({marks})"
    connection.executemany(into, [(first, *other), (second, *one)])


@pytest.mark.parametrize(("table", "kind"), ROW_CASES)
def test_a_row_that_was_deleted_inserted_or_exchanged(folder: Folder, table: str, kind: int) -> None:
    kinds = columns_of(folder)[table]
    changes: tuple[Callable[[sqlite3.Connection], object], ...] = (
        lambda file: file.execute(f"DELETE FROM {table} {where(table)}"),
        lambda file: copied(file, table, kinds),
        lambda file: exchanged(file, table, kinds),
    )
    before = folder.ledger.read_bytes()
    folder.change(changes[kind])
    assert folder.ledger.read_bytes() != before
    row = ROWS_OF[table][kind]
    assert row is not None
    agrees(folder, row)


def test_the_table_of_rows_knows_every_table() -> None:
    assert set(ROWS_OF) == set(COLUMNS)


OTHERS: dict[str, tuple[str, Callable[[Folder], object], str]] = {
    # what was done -> row of the document, how, words
    "the last two events": (TAIL, sql("DELETE FROM events WHERE seq > (SELECT max(seq) - 2 FROM events)"),
                            "events are missing after this one"),
    "a receipt signed anew": (RECEIPT_ROWS, sign_another_receipt, "is not the one whose hash it has"),
    "two receipts exchanged, ids and all": (RECEIPT_ROWS, deliver_twice, "and the one beside it is "),
    "another intent said to wait": (WAITS, say_that_an_ended_one_waits, "it ended the intent intent_"),
    "a signature of a checkpoint": (NOTE_SIGNATURE, sql(
        "UPDATE checkpoints SET note = replace(note, substr(note, -20, 8), 'AAAAAAAA')"
        " WHERE size = (SELECT min(size) FROM checkpoints)"), ""),
    "epoch raised": (EPOCH_RAISED, sql("UPDATE epochs SET epoch = epoch + 1"), ""),
    "epoch lowered": (EPOCH_LOWERED, sql(f"UPDATE epochs SET epoch = {EPOCH - 1}"), "it raised the epoch to 1"),
    "trigger": (PLANTED, sql("CREATE TRIGGER t AFTER INSERT ON unresolved BEGIN DELETE FROM unresolved; END"),
                "it has a trigger t"),
    "view": (PLANTED, sql("CREATE VIEW v AS SELECT * FROM events"), "it has a view v"),
    "index": (HIDDEN, hide, "the file's own structure is damaged"),
    "computed anew": (FORGED, compute_anew, ""),
    "computed anew, file removed": (FORGED_FILE, compute_anew_and_remove, ""),
    "earlier ledger": (EARLIER, put_back, ""),
    "earlier folder": (EARLIER_FOLDER, put_back_whole, ""),
    "file removed": (FILE, lambda folder: folder.checkpoints.unlink(), ""),
    "file emptied": (FILE, lambda folder: folder.checkpoints.write_bytes(b""), ""),
    "file cut": (FILE, shorten, ""),
    "file of before": (FILE, put_early_file, ""),
    "its last line": (FILE, lambda folder: change_line(folder, -1), ""),
    "its first line": (FILE_LINE, lambda folder: change_line(folder, 0), ""),
    "own key": (OWN_KEY, exchange_own_key, ""),
    "receipt key under another's name": (RECEIPT_KEYS, exchange_receipt_key, "not have the content that was signed"),
    "receipt keys of another gateway": (RECEIPT_KEYS, give_other_keys, "that the key file does not list"),
}  # fmt: skip
OF_THE_KILLED: dict[str, tuple[str, Callable[[Folder], object], str]] = {
    "an event": (IN_JOURNAL, lambda folder: change_journal(folder, change_event), COLUMN),
    "a receipt": (IN_JOURNAL, lambda folder: change_journal(folder, change_receipt), "content that was signed"),
    "an intent": (INTENT_IN_JOURNAL, lambda folder: change_journal(folder, change_intent), ""),
    "a place in the tree too many": (
        KEPT_GONE, lambda folder: change_journal(folder, give_a_place_too_many), "the journal makes no sense"
    ),
    "no places": (KEPT_GONE, lambda folder: change_journal(folder, take_places), "where in the tree"),
    "all of it": (UNCOMMITTED, cut_what_waits, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_folder_that_was_changed_in_another_way(folder: Folder, name: str) -> None:
    row, change, words = OTHERS[name]
    change(folder)
    agrees(folder, row, words)


@pytest.mark.parametrize("name", OF_THE_KILLED)
def test_what_a_kill_left_in_the_journal(left: Folder, name: str) -> None:
    row, change, words = OF_THE_KILLED[name]
    change(left)
    agrees(left, row, words)


def evidence_in(folder: Folder) -> list[object]:
    """Every row of evidence, and what of the journal waits."""
    with closing(sqlite3.connect(f"file:{folder.ledger}?mode=ro", uri=True)) as file:
        tables = ("events", "receipts", "intents", "unresolved", "tiles", "checkpoints")
        return [unsettled(file), *(file.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall() for table in tables)]


FLIPS = 250


@pytest.mark.large
def test_no_byte_of_the_file_can_be_changed_so_that_evidence_changes_and_the_check_does_not_say_so(
    folder: Folder,
) -> None:
    chance = random.Random(os.urandom(8))
    whole, before, said = folder.ledger.read_bytes(), evidence_in(folder), set[int]()
    for _ in range(FLIPS):
        at, flipped = chance.randrange(len(whole)), chance.randrange(1, 256)
        folder.ledger.write_bytes(whole[:at] + bytes([whole[at] ^ flipped]) + whole[at + 1 :])
        code, words = folder.verify("--checkpoint-key", folder.verifier_key)
        assert code in (Exit.OK, Exit.CHECK_FAILED, Exit.UNAVAILABLE), (at, flipped, words)
        assert code != Exit.OK or evidence_in(folder) == before, (at, flipped, words)
        said.add(code)
    assert {Exit.OK, Exit.CHECK_FAILED} <= said


def test_every_row_of_the_document_is_tried() -> None:
    tried = {case.row for columns in COLUMNS.values() for case in columns.values()}
    tried |= {case.row for cases in META.values() for case in cases}
    tried |= {row for rows in ROWS_OF.values() for row in rows if row is not None}
    tried |= {row for row, *_ in (*OTHERS.values(), *OF_THE_KILLED.values())}
    assert tried == set(ROWS)


def test_what_nothing_finds_is_what_the_security_page_names() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    section = page.partition("\n## What no check finds\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE))
    assert named == {row for row, cells in ROWS.items() if cells == ("not found", "not found", "not found", "starts")}
