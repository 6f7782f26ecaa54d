"""Erased values can be read in no file, whatever the size of the ledger: copies of their rows have lost their keys."""

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.activity import SummariseAudit
from ipc.operations.erasing import EraseKept
from notary.backends.sqlite import connect
from notary.ledger import activity
from notary.ledger.activity_sums import SUM_KEYS
from notary.ledger.encrypted_values import GROUP, VALUE_KEYS, forget_keys, number_of
from notary.ledger.kept_values import insert, stored_values
from notary.ledger.key_pages import KeyPages
from notary.programs.backup import LEDGER, back_up
from tests.notary.operations.test_erase_kept import OF_PERSON
from tests.notary.running import Running, walk_of
from tests.notary.samples import ERASED, NOW, call_event, make_open
from tests.support.supervised import wait_until

SALT = bytes(range(16))
EMPTY = "UPDATE kept_values SET value = NULL, salt = NULL, erased_by = 1 WHERE key = ?"


def keys_in(ledger: Path, pages: KeyPages = VALUE_KEYS) -> dict[int, bytes]:
    with closing(connect(ledger, writes=False)) as connection:
        return dict(pages.living(connection))


def raw(ledger: Path) -> bytes:
    """All files of the folder."""
    return b"".join(file.read_bytes() for file in sorted(ledger.parent.rglob("*")) if file.is_file())


class Values:
    """Values of a file, each of a call of its own, that are kept and erased in no order."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.ledger = connect(path, writes=True)
        self.ledger.execute("PRAGMA synchronous=OFF")
        self.kept: dict[str, bytes] = {}
        self.gone: set[bytes] = set()
        """Keys of values that were erased."""

    def keep(self, count: int) -> None:
        rows = []
        for _ in range(count):
            key = f"intent_{self.chance.getrandbits(64):016x}"
            self.kept[key] = f'"value-{key}-{"x" * self.chance.choice([0, 200, 900])}"'.encode()
            rows.append((key, "/a", None, "kept", self.kept[key], SALT))
        insert(self.ledger, rows, (), is_file=True)

    def leave(self, keys: list[str], statement: str) -> None:
        """These values leave the table by a statement for each."""
        values = [self.ledger.execute("SELECT value FROM kept_values WHERE key = ?", (key,)).fetchone() for key in keys]
        numbers, living = {number_of(value) or 0 for (value,) in values}, dict(VALUE_KEYS.living(self.ledger))
        self.ledger.executemany(statement, [(key,) for key in keys])
        forget_keys(self.ledger, numbers)
        self.gone |= {living[number] for number in numbers}
        for key in keys:
            del self.kept[key]

    def some(self, count: int) -> list[str]:
        return self.chance.sample(sorted(self.kept), min(count, len(self.kept)))

    def judge(self) -> None:
        """Raise AssertionError unless each value that is kept can be read, and no file has a key of another."""
        self.ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = raw(self.path)
        for key, value in self.kept.items():
            assert [(one.value, one.salt) for one in stored_values(self.ledger, key)] == [(value, SALT)]
        assert b'"value-' not in content
        assert self.gone
        assert not [key for key in self.gone if key in content]
        assert self.ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.fixture
def stopped(notary: Running) -> Running:
    notary.stop()
    return notary


@pytest.mark.parametrize("seed", range(3))
def test_what_was_erased_in_any_order_can_be_read_in_no_file(stopped: Running, seed: int) -> None:
    values = Values(stopped.path, seed)
    with closing(values.ledger):
        for _ in range(30):
            for _ in range(values.chance.randrange(8)):
                values.keep(values.chance.randrange(1, 30))
            statement = values.chance.choice([EMPTY, "DELETE FROM kept_values WHERE key = ?"])
            values.leave(values.some(values.chance.choice([1, 10, 60])), statement)
        values.judge()
        (copies,) = values.ledger.execute("SELECT count(*) FROM kept_values").fetchone()
        assert copies > 5 * GROUP


def test_a_notary_that_is_killed_while_it_erases_has_erased_nothing(stopped: Running) -> None:
    values = Values(stopped.path, 0)
    values.keep(500)
    values.ledger.close()
    before = keys_in(stopped.path)
    if (child := os.fork()) == 0:
        values.ledger = connect(stopped.path, writes=True)
        values.ledger.execute("PRAGMA cache_size=5")  # changed pages come to the disk before the end
        values.ledger.execute("BEGIN IMMEDIATE")
        values.leave(values.some(200), EMPTY)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert keys_in(stopped.path) == before
    values.ledger = connect(stopped.path, writes=True)
    with closing(values.ledger):
        values.leave(values.some(200), EMPTY)
        values.judge()


def test_an_erasing_among_many_calls_takes_the_keys_of_their_values(notary: Running, tmp_path: Path) -> None:
    for number in range(120):
        principal = "uid:7" if number % 3 == 0 else "uid:1000"
        notary.front.ask(make_open(kept=OF_PERSON, event=call_event(principal=principal)))
    notary.restart()
    before = keys_in(notary.path)
    answer = notary.front.ask(EraseKept(ERASED, principal="uid:7"))
    while answer.next is not None:
        answer = notary.front.ask(EraseKept(ERASED, principal="uid:7", after=answer.next))
    notary.stop()
    content = raw(notary.path)
    assert len(before) >= 4
    assert not [key for key in before.values() if key in content]
    assert len(keys_in(notary.path)) == 3  # of the 160 values that are left
    back_up(notary.settings, tmp_path / "backup", with_keys=False)
    assert keys_in(tmp_path / "backup" / LEDGER) == keys_in(notary.path)
    notary.start()
    assert walk_of(notary).intact


def spend(notary: Running, amount: str) -> None:
    event = call_event(principal=f"uid:{amount[-1]}")
    notary.front.ask(make_open(kept=KeptValues((KeptValue("/amount", amount),)), event=event))


def test_sums_get_another_key_once_a_value_has_left_them(notary: Running) -> None:
    hour = int(NOW // 3600)
    for later in range(3):
        notary.clock.time = NOW + later * 3600
        for amount in ("7700001", "7700002"):
            spend(notary, amount)
            notary.front.ask(SummariseAudit(hour, hour + 1, 1))
    notary.restart()
    before = keys_in(notary.path, SUM_KEYS)
    assert len(before) == 4
    notary.front.ask(EraseKept(ERASED, principal="uid:1", before=NOW + 1))
    assert [one.sum for one in notary.front.ask(SummariseAudit(hour, hour + 1, 1)).sums] == ["7700002"]
    (total,) = notary.front.ask(SummariseAudit(hour // 24 * 24, hour // 24 * 24 + 24, 24)).sums
    assert total.sum == str(3 * 7700002 + 2 * 7700001)
    notary.stop()
    after, content = keys_in(notary.path, SUM_KEYS), raw(notary.path)
    gone = set(before.values()) - set(after.values())
    assert (len(gone), len(after)) == (2, 4)
    assert not [key for key in gone if key in content]
    assert not [amount for amount in (b"7700001", b"7700002") if amount in content]


def test_keys_of_sums_that_are_forgotten_by_age_leave_the_file(notary: Running) -> None:
    spend(notary, "77")
    notary.front.ask(SummariseAudit(0, 1, 1))
    notary.restart()
    before = keys_in(notary.path, SUM_KEYS)
    assert len(before) == 2
    notary.clock.time += (activity.KEPT_HOURS + 25) * 3600
    notary.restart()
    notary.front.ask(make_open())
    wait_until(lambda: not keys_in(notary.path, SUM_KEYS))
    notary.stop()
    assert not [key for key in before.values() if key in raw(notary.path)]


OLD_TABLES = """
DROP TABLE kept_values;
DROP TABLE kept_keys;
DROP TABLE activity_keys;
CREATE TABLE kept_values (
    key TEXT NOT NULL, pointer TEXT NOT NULL, seq INTEGER, kind TEXT NOT NULL, value BLOB, salt BLOB,
    erased_by INTEGER, PRIMARY KEY (key, pointer)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_values_by_value ON kept_values (pointer, value) WHERE kind = 'kept' AND value IS NOT NULL;
CREATE INDEX kept_values_by_seq ON kept_values (seq) WHERE value IS NOT NULL;
CREATE INDEX kept_values_erased ON kept_values (erased_by, seq) WHERE erased_by IS NOT NULL;
"""


def old_values() -> Iterator[tuple[str, str, bytes]]:
    some = random.Random(7)
    for number in range(2500):
        text = f'"V-{number:08}-{"x" * some.choice([10, 200, 900])}"'
        yield f"intent_{some.getrandbits(64):016x}", "kept" if number % 2 else "masked", text.encode()


@pytest.fixture
def old(stopped: Running) -> Running:
    """A file of an earlier version, whose pages have copies of values; every third one is erased, and sums too."""
    values = list(old_values())
    with closing(sqlite3.connect(stopped.path)) as ledger, ledger:
        ledger.executescript(OLD_TABLES)
        ledger.executemany(
            "INSERT INTO kept_values VALUES (?, '/a', ?, ?, ?, ?, NULL)",
            [(key, number, kind, value, SALT) for number, (key, kind, value) in enumerate(values)],
        )
        ledger.executemany(EMPTY, [(key,) for key, _, _ in values[::3]])
        hour = int(NOW // 3600)
        ledger.executemany(
            "INSERT INTO activity_sums VALUES (?, ?, 'act', ?, '7700001.5')",
            [(step, hour // step * step, f"/{n}") for step in (1, 24) for n in range(100)],
        )
    assert b"V-0000" in raw(stopped.path)
    return stopped


def test_a_file_of_an_earlier_version_is_encrypted_once_and_nothing_of_it_stays_as_it_was(old: Running) -> None:
    old.start()
    old.stop()
    content = raw(old.path)
    assert b"V-0000" not in content
    assert b"7700001" not in content
    keys = keys_in(old.path)
    old.start()
    hour = int(NOW // 3600)
    assert {one.sum for one in old.front.ask(SummariseAudit(hour, hour + 1, 1)).sums} == {"7700001.5"}
    old.stop()
    assert keys_in(old.path) == keys
    with closing(connect(old.path, writes=False)) as ledger:
        for number, (key, kind, value) in enumerate(old_values()):
            (row,) = stored_values(ledger, key)
            expected = (None, None, 1) if number % 3 == 0 else (value, SALT, None)
            assert (row.kind, row.value, row.salt, row.erased_by) == (kind, *expected)


def test_values_that_an_earlier_version_wrote_later_are_encrypted_too(old: Running) -> None:
    old.start()
    old.stop()
    old.execute("INSERT INTO kept_values VALUES ('later', '/a', 1, 'kept', CAST('5' AS BLOB), ?, NULL)", SALT)
    old.start()
    old.stop()
    assert old.stored("SELECT 1 FROM kept_values WHERE value >= x'01'") == []
    with closing(connect(old.path, writes=False)) as ledger:
        assert [row.value for key in ("later", next(old_values())[0]) for row in stored_values(ledger, key)] == [
            b"5",
            None,
        ]
