"""A ledger's file from elsewhere whose tables compute when they are read: refused before any of them is read.

Each program runs as a process of its own: a query that never ends can't be ended from within.
"""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.process.exits import Exit
from ipc.settings import LedgerSettings, Settings
from notary.backends.sqlite import SqliteDatabase
from notary.database import DatabaseGone
from notary.ledger.schema import prepare
from notary.programs.backup import NotBackedUp, back_up
from notary.reading.source import NotReadable, Source, opened
from tests.notary.running import ROOT
from tests.support.ledger_file import made_ledger

SECONDS = 120.0
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i > 0)"
_VIEW_OF_META = f"CREATE VIEW meta AS {_ENDLESS} SELECT 'key' AS key, i AS value FROM n WHERE i < 0"
_VIEW_OF_EVENTS = f"CREATE VIEW events AS {_ENDLESS} SELECT i AS seq, i AS bytes FROM n WHERE i < 0"
SHAPES: dict[str, tuple[tuple[str, ...], str]] = {
    "a view in place of meta": (("DROP TABLE meta", _VIEW_OF_META), "a view meta"),
    "a view in place of events": (("DROP TABLE events", _VIEW_OF_EVENTS), "a view events"),
    "a virtual table": (("CREATE VIRTUAL TABLE found USING rtree(id, least, most)",), "a virtual table found"),
    "a generated column": (
        ("ALTER TABLE events ADD COLUMN slow INTEGER AS (length(hex(zeroblob(400000000))))",),
        "a generated column events.slow",
    ),
}  # fmt: skip


@pytest.fixture(params=SHAPES)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """The file, and what is wrong with it."""
    file = made_ledger(tmp_path / "ledger.sqlite3")
    statements, words = SHAPES[request.param]
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return file, words


def test_the_offline_check_says_that_it_is_broken(ledger: tuple[Path, str], tmp_path: Path) -> None:
    file, words = ledger
    (tmp_path / "keys.json").write_text('{"keys": []}')
    command = [sys.executable, "-m", "notary.programs.offline", str(file), "--keys", str(tmp_path / "keys.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == Exit.CHECK_FAILED, done.stderr
    assert f"is broken: it has {words}, which no gateway makes" in done.stdout


def test_a_look_at_a_trace_refuses_it(ledger: tuple[Path, str]) -> None:
    file, words = ledger
    program = f"import os; from notary.programs.trace import main; raise SystemExit(main({str(file)!r}))"
    program = program.replace("main('", "main(['trc_1', '--parent', str(os.getppid()), '").replace("'))", "']))")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == Exit.UNAVAILABLE
    assert words in done.stderr


def test_no_gateway_starts_with_it_reads_it_or_backs_it_up(ledger: tuple[Path, str], tmp_path: Path) -> None:
    file, words = ledger
    with pytest.raises(DatabaseGone, match=words):
        SqliteDatabase(file, prepare).open()
    with pytest.raises(NotReadable, match=words), opened(Source(str(file))):
        pass
    settings = Settings(state_dir=str(tmp_path), public_base_url="", ledger=LedgerSettings(path=str(file)))
    with pytest.raises(NotBackedUp, match=words):
        back_up(msgspec.structs.replace(settings), tmp_path / "kept", with_keys=False)
    assert not (tmp_path / "kept").exists()
