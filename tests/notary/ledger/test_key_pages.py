"""Keys of rows that are erased later: a key that was dropped is in no file."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from notary.backends.sqlite import connect
from notary.ledger.key_pages import IN_PAGE, KeyPages, KeyReader, decrypted, encrypted
from tests.support.ledger_file import made_ledger

KEYS = KeyPages("some_keys")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(made_ledger(tmp_path / "ledger.sqlite3"), writes=True)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(KEYS.tables[0])
        yield connection


def raw(ledger: sqlite3.Connection, folder: Path) -> bytes:
    """All files, once the write-ahead log is in the ledger."""
    ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return b"".join(one.read_bytes() for one in folder.glob("ledger.sqlite3*"))


def test_a_key_that_was_dropped_is_in_no_file_and_others_stay(ledger: sqlite3.Connection, tmp_path: Path) -> None:
    chance, keys, gone = random.Random(0), dict[int, bytes](), list[bytes]()
    for _ in range(10):
        made = [KEYS.make(ledger) for _ in range(chance.choice((1, 30, 200)))]
        assert not keys.keys() & set(made)
        keys = dict(KEYS.living(ledger))
        ledger.execute("CREATE TABLE IF NOT EXISTS other (bytes BLOB)")
        ledger.execute("INSERT INTO other VALUES (randomblob(9000))")  # pages between those of the keys
        dropped = chance.sample(sorted(keys), len(keys) * 2 // 3)
        gone += [keys.pop(number) for number in dropped]
        KEYS.drop(ledger, dropped)
    assert dict(KEYS.living(ledger)) == keys
    content = raw(ledger, tmp_path)
    assert not [key for key in gone if key in content]
    assert all(key in content for key in keys.values())


def test_rows_of_dropped_keys_are_removed_but_for_the_newest(ledger: sqlite3.Connection) -> None:
    numbers = [KEYS.make(ledger) for _ in range(3 * IN_PAGE)]
    KEYS.drop(ledger, numbers[:-1])
    assert ledger.execute("SELECT page FROM some_keys").fetchall() == [(2,)]
    KEYS.drop(ledger, numbers)
    assert KEYS.make(ledger) == 2 * IN_PAGE


@pytest.mark.parametrize("damage", [
    "UPDATE some_keys SET keys = x'00'", "UPDATE some_keys SET keys = zeroblob(9000)", "UPDATE some_keys SET page = -7",
    f"UPDATE some_keys SET page = {2**62}", "DELETE FROM some_keys", "DROP TABLE some_keys",
])  # fmt: skip
def test_keys_that_make_no_sense_are_not_there(ledger: sqlite3.Connection, damage: str) -> None:
    number = KEYS.make(ledger)
    ledger.execute(damage)
    assert KeyReader(KEYS, ledger).cipher(number) is None
    assert KEYS.living(ledger) == []


def test_a_new_key_takes_another_row_where_the_newest_makes_no_sense(ledger: sqlite3.Connection) -> None:
    KEYS.make(ledger)
    ledger.execute("UPDATE some_keys SET keys = x'00'")
    assert KEYS.make(ledger) == IN_PAGE


def test_content_is_read_with_its_own_key_alone(ledger: sqlite3.Connection) -> None:
    reader = KeyReader(KEYS, ledger)
    first, second = (reader.cipher(KEYS.make(ledger)) for _ in range(2))
    assert first is not None
    assert second is None, "its page was read before"
    second = KeyReader(KEYS, ledger).cipher(1)
    assert second is not None
    stored = encrypted(first, b"content")
    assert stored != encrypted(first, b"content")
    assert decrypted(first, stored) == b"content"
    assert decrypted(second, stored) is None
    assert decrypted(first, stored[:-1] + bytes([stored[-1] ^ 1])) is None
    assert decrypted(first, b"") is None
