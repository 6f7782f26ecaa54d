"""Copies of erased values in the free room of pages that were split: they leave the ledger's file and its backups."""

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipc.operations.erasing import EraseKept
from notary.backends.sqlite import connect
from notary.backup import LEDGER, back_up
from notary.ledger import write_anew as rewriting
from notary.ledger.kept_values import KeptRow, insert
from notary.ledger.write_anew import write_anew
from notary.store.own_pages import erasing
from tests.notary.operations.test_erase_kept import ERASED, OF_PERSON
from tests.notary.running import Running
from tests.notary.samples import NOW, make_open
from tests.support.supervised import wait_until

ERASE = "UPDATE kept_values SET value = NULL, salt = NULL, erased_by = 1 WHERE seq % 3 = 0"
OF_OTHERS = "SELECT key, value FROM kept_values WHERE value IS NOT NULL ORDER BY key"


def rows() -> Iterator[KeptRow]:
    """Calls in no order, as values in an index are; every third one is erased later."""
    some = random.Random(7)
    for number in range(3000):
        kind = "S" if number % 3 == 0 else "K"
        value = f'"{kind}-{number:08}-{"x" * some.choice([10, 200, 900])}"'.encode()
        yield f"intent_{some.getrandbits(64):016x}", "/a", number, "kept", value, bytes(16)


@pytest.fixture
def torn(notary: Running) -> Running:
    """A stopped ledger whose pages have copies of erased values."""
    notary.stop()
    with closing(connect(notary.path, writes=True)) as ledger:
        for row in rows():
            insert(ledger, [row], ())
        with erasing(ledger):
            ledger.execute(ERASE)
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert copies(notary.path)
    return notary


def copies(file: Path) -> int:
    return file.read_bytes().count(b'"S-00')


def others(file: Path) -> list[tuple[str, bytes]]:
    with closing(sqlite3.connect(file)) as ledger:
        return ledger.execute(OF_OTHERS).fetchall()


def test_rows_that_are_written_anew_leave_no_copy_and_are_the_same(torn: Running) -> None:
    before = others(torn.path)
    assert len(before) == 2000
    with closing(connect(torn.path, writes=True)) as ledger:
        ledger.execute("BEGIN")
        assert write_anew(ledger)
        ledger.execute("COMMIT")
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert copies(torn.path) == 0
    assert others(torn.path) == before


def test_the_next_erasing_of_a_notary_leaves_no_copy_also_if_it_has_nothing_to_erase(torn: Running) -> None:
    front = torn.start()
    front.ask(EraseKept(ERASED, principal="uid:7"))
    front.ask(make_open(kept=OF_PERSON))
    torn.stop()
    assert copies(torn.path) == 0


def test_a_ledger_with_more_rows_keeps_copies_that_its_backup_lacks(
    torn: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "REWRITTEN", 2999)
    front = torn.start()
    front.ask(EraseKept(ERASED, principal="uid:7"))
    torn.stop()
    back_up(torn.settings, tmp_path / "backup", with_keys=False)
    backup = tmp_path / "backup" / LEDGER
    assert (copies(torn.path) > 0, copies(backup)) == (True, 0)
    assert others(backup) == others(torn.path)


def write_sums(notary: Running, last_hour: int) -> None:
    """Sums of single calls, written in no order; those of every third one leave the table."""
    notary.stop()
    with closing(connect(notary.path, writes=True)) as ledger:
        ledger.execute("BEGIN")
        for number in random.Random(7).sample(range(3000), 3000):
            row = (last_hour - number, "/a" * (number % 9 + 1), f"{7700 + number % 3}{number:06}")
            ledger.execute("INSERT INTO activity_sums VALUES (1, ?, 'act', ?, ?)", row)
        with erasing(ledger):
            ledger.execute("DELETE FROM activity_sums WHERE sum LIKE '7700%'")
        ledger.execute("COMMIT")
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert sums_in(notary) >= {"7700", "7701", "7702"}


def sums_in(notary: Running) -> set[str]:
    """The beginnings of the sums that the file has."""
    return {found.decode() for found in re.findall(rb"(770[012])\d{6}", notary.path.read_bytes())}


def test_a_sum_that_an_erased_value_has_left_leaves_no_copy(notary: Running) -> None:
    write_sums(notary, int(NOW // 3600))
    front = notary.start()
    front.ask(EraseKept(ERASED, principal="uid:7"))
    front.ask(make_open(kept=OF_PERSON))
    notary.stop()
    assert sums_in(notary) == {"7701", "7702"}
    assert len(notary.stored("SELECT sum FROM activity_sums WHERE sum LIKE '770_______'")) == 2000


def test_sums_that_are_forgotten_by_age_leave_the_pages_that_they_were_in(notary: Running) -> None:
    write_sums(notary, 10_000)
    front = notary.start()
    front.ask(make_open())
    wait_until(lambda: notary.stored("SELECT sum FROM activity_sums WHERE sum LIKE '770_______'") == [])
    front.ask(EraseKept(ERASED, principal="uid:7"))
    notary.stop()
    assert sums_in(notary) == set()
