"""Every column of every table of a ledger changed, and rows deleted, inserted and exchanged, with each check's verdict.

A column that is added fails here until tests/notary/reading/tamper_table.py names the checks that find its change.
"""

import sqlite3
from collections.abc import Callable

import pytest

from tests.notary.reading.tamper_table import (
    COLUMNS,
    EPOCH_LOWERED,
    EVENT_ROWS,
    INTENT_ROWS,
    KEPT,
    META,
    NO_EVIDENCE,
    NOTE,
    NOTE_GONE,
    RECEIPT_ROWS,
    SPARE,
    TILES,
    WAITS,
    agrees,
)
from tests.notary.reading.tampering import Folder

MIDDLE = "WHERE rowid = (SELECT rowid FROM {0} ORDER BY rowid LIMIT 1 OFFSET (SELECT count(*) / 2 FROM {0}))"
FIRST_OF = "WHERE {1} = (SELECT {1} FROM {0} ORDER BY {1} LIMIT 1)"
WITHOUT_ROWID = {
    "meta": "key", "budgets": "session_id", "proofs": "key", "unresolved": "intent_id", "quota_calls": "principal",
    "quota_holds": "approval_id", "quota_sessions": "principal", "last_sessions": "holder",
    "kept_bytes": "principal", "kept_values": "key", "activity": "hour", "activity_sums": "hour",
    "cap_amounts": "action_id", "cap_reserved": "approval_id", "call_keys": "name", "call_key_counts": "principal",
    "call_ends": "call_id", "kept_output_bytes": "principal", "standing_approvals": "standing_id",
    "sealed_intents": "intent_id",
}  # fmt: skip
USUAL = {
    "TEXT": "coalesce({0}, '') || 'x'", "INTEGER": "abs(coalesce({0}, 0)) + 1000", "REAL": "{0} + 1000",
    "BLOB": "CAST(substr({0}, 1, length({0}) / 2) || 'x' || substr({0}, length({0}) / 2 + 2) AS BLOB)",
}  # fmt: skip


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


def test_the_table_knows_every_table_and_every_column(whole: Folder) -> None:
    assert {table: set(columns) for table, columns in columns_of(whole).items()} == {
        table: set(columns) for table, columns in COLUMNS.items()
    }
    assert {key for (key,) in whole.rows("SELECT key FROM meta")} == set(META)


def test_there_is_something_to_change_in_every_table(whole: Folder) -> None:
    empty = {table for table in COLUMNS if not whole.rows(f"SELECT 1 FROM {table}")}
    assert empty == {"last_unit"}, "what a unit answers is in the journal, as a rule"


def together(table: str) -> list[list[str]]:
    """The columns of a table that are changed at once: those that no check looks at, and of the others each alone."""
    free = [name for name, case in COLUMNS[table].items() if case.row == NO_EVIDENCE]
    return [*([free] if free else []), *([name] for name in COLUMNS[table] if name not in free)]


@pytest.mark.parametrize(("table", "columns"), [
    (table, columns) for table in COLUMNS if table not in ("meta", "last_unit") for columns in together(table)
], ids=lambda one: one if isinstance(one, str) else one[0])  # fmt: skip
def test_a_change_of_a_column_is_found_as_the_document_says(folder: Folder, table: str, columns: list[str]) -> None:
    case, kinds = COLUMNS[table][columns[0]], columns_of(folder)[table]
    values = ", ".join(f"{name} = {COLUMNS[table][name].value or USUAL[kinds[name]].format(name)}" for name in columns)

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        names = ", ".join(columns)
        row = connection.execute(f"SELECT {names} FROM {table} {where(table)}").fetchone()
        (new,) = connection.execute(f"UPDATE {table} SET {values} {where(table)} RETURNING {names}").fetchall()
        assert [name for name, one, other in zip(columns, row, new, strict=True) if one == other] == []

    folder.change(change)
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
    "tiles": (TILES, TILES, TILES), "checkpoints": (NOTE_GONE, NOTE, NOTE),
    "kept_values": (KEPT, KEPT, KEPT), "kept_keys": (KEPT, NO_EVIDENCE, None), "journal": (SPARE, SPARE, SPARE),
    "epochs": (EPOCH_LOWERED, None, None), "meta": (None, NO_EVIDENCE, None), "last_unit": (None, NO_EVIDENCE, None),
    "proofs": (NO_EVIDENCE, NO_EVIDENCE, None), "quota_holds": (NO_EVIDENCE, NO_EVIDENCE, None),
    **dict.fromkeys(
        (
            "budgets", "quota_calls", "quota_sessions", "last_sessions", "approvals", "kept_approvals", "kept_bytes",
            "outbox", "given_up", "activity", "activity_sums", "cap_amounts", "cap_reserved", "call_keys",
            "call_key_counts", "call_ends", "kept_outputs", "kept_output_bytes", "standing_approvals",
            "sealed_intents",
        ),
        (NO_EVIDENCE,) * 3,
    ),
    "activity_keys": (NO_EVIDENCE, NO_EVIDENCE, None),
}  # fmt: skip
"""None: there is one row, or a row is nothing but its key, or all are alike."""
DELETED, INSERTED, EXCHANGED = range(3)
KINDS = (EXCHANGED, INSERTED, DELETED)
"""In the order in which they are done where all are done."""
ROW_CASES = [
    *((table, [kind], row) for table, rows in ROWS_OF.items() for kind, row in enumerate(rows)
      if row not in (None, NO_EVIDENCE)),
    *((table, [kind for kind in KINDS if rows[kind] == NO_EVIDENCE], NO_EVIDENCE) for table, rows in ROWS_OF.items()
      if NO_EVIDENCE in rows),
]  # fmt: skip
"""Table, what is done to its rows, and the row of the document."""


def copied(connection: sqlite3.Connection, table: str, kinds: dict[str, str]) -> None:
    """A row once more, with a key and an id of its own."""
    key = next(iter(COLUMNS[table]))
    own = {key: f"-{key} - 1" if kinds[key] == "INTEGER" else USUAL["TEXT"].format(key)}
    own |= {
        name: USUAL["TEXT"].format(name)
        for name in ("intent_id", "receipt_id", "approval_id", "call_id")
        if name in kinds
    }
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


@pytest.mark.parametrize(("table", "done", "row"), ROW_CASES)
def test_rows_deleted_inserted_or_exchanged_are_found_as_the_document_says(
    folder: Folder, table: str, done: list[int], row: str
) -> None:
    kinds = columns_of(folder)[table]
    changes: tuple[Callable[[sqlite3.Connection], object], ...] = (
        lambda file: file.execute(f"DELETE FROM {table} {where(table)}"),
        lambda file: copied(file, table, kinds),
        lambda file: exchanged(file, table, kinds),
    )
    for kind in done:
        before = folder.ledger.read_bytes()
        folder.change(changes[kind])
        assert folder.ledger.read_bytes() != before
    agrees(folder, row)


def test_the_table_of_rows_knows_every_table() -> None:
    assert set(ROWS_OF) == set(COLUMNS)
