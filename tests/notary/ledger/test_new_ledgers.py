"""The file of a new ledger: its contents, and that no other program has put anything into it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from notary.backends.sqlite import SqliteDatabase
from notary.database import DatabaseGone
from notary.ledger import schema
from tests.notary.running import stored
from tests.support.notary_thread import SMALL_WAL


def opened(path: Path) -> Path:
    """The file, opened once as a ledger."""
    database = SqliteDatabase(path, schema.prepare, SMALL_WAL)
    database.open()
    database.close()
    return path


def test_each_ledger_has_a_name_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    paths = [opened(tmp_path / name) for name in ("one", "other")]
    statement = "SELECT value FROM meta WHERE key = 'ledger_id'"
    names = [name for path in paths for name in stored(path, statement)]
    assert len(set(names)) == 2
    assert [name for path in paths for name in stored(opened(path), statement)] == names


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TRIGGER hides AFTER INSERT ON unresolved BEGIN DELETE FROM unresolved; END", "it has a trigger hides"),
        ("CREATE VIEW beside AS SELECT * FROM events", "it has a view beside"),
    ],
)
def test_a_ledger_with_foreign_triggers_is_refused_and_left_alone(tmp_path: Path, statement: str, said: str) -> None:
    path = opened(tmp_path / "ledger.sqlite3")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    before = stored(path, "SELECT sql FROM sqlite_master ORDER BY name")
    with pytest.raises(DatabaseGone, match=f"{said}, which no gateway makes"):
        opened(path)
    assert stored(path, "SELECT sql FROM sqlite_master ORDER BY name") == before
