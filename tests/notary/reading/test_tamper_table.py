"""Every row of the table of docs/evidence.md is tried, here with changes of a state folder's files and of many columns.

That table says of each row whether `gateway ledger verify` finds it, alone, with the log's key and with a checkpoint
that was kept, and with which code a gateway starts on it. The changes of one column or row are in
tests/notary/reading/test_tampered_tables.py.
"""

import os
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from ipc.process.exits import Exit
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
from tests.notary.reading.tamper_table import (
    COLUMN,
    COLUMNS,
    EARLIER,
    EARLIER_FOLDER,
    EPOCH_LOWERED,
    EPOCH_RAISED,
    FILE,
    FILE_LINE,
    FORGED,
    FORGED_FILE,
    HIDDEN,
    IN_JOURNAL,
    INTENT_IN_JOURNAL,
    KEPT_EMPTIED,
    KEPT_GONE,
    META,
    NOTE_SIGNATURE,
    OWN_KEY,
    PLANTED,
    RECEIPT_KEYS,
    RECEIPT_ROWS,
    ROWS,
    TAIL,
    UNCOMMITTED,
    WAITS,
    agrees,
)
from tests.notary.reading.tampering import EPOCH, Folder
from tests.notary.reading.test_tampered_tables import ROWS_OF
from tests.notary.running import ROOT


def test_an_unchanged_ledger_raises_no_alarm(folder: Folder, left: Folder) -> None:
    for one in (folder, left):
        verdicts = one.judged()
        assert verdicts[:4] == (0, 0, 0, 0), verdicts
        assert " is intact: " in verdicts.words


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
    **{f"a value emptied, erased by {event}": (KEPT_EMPTIED, sql(
        f"UPDATE kept_values SET value = NULL, salt = NULL, erased_by = {event}"), "is said to have erased it did not")
       for event in ("NULL", "1", "99999")},
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
def test_tampering_with_the_journal_of_a_killed_gateway_is_noticed(left: Folder, name: str) -> None:
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


def test_the_undetected_changes_are_those_that_the_security_page_names() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    section = page.partition("\n## What no check finds\n")[2].partition("\n## ")[0]
    named = {" ".join(row.split()) for row in re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE | re.DOTALL)}
    assert named == {row for row, cells in ROWS.items() if cells == ("not found", "not found", "not found", "starts")}
