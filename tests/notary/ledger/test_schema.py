"""Ledgers of versions before: brought to this one when they are opened, whole or not at all."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.approvals import read_remains
from ipc.evidence.events import AuditEvent
from notary.database import DatabaseGone
from notary.ledger import page_ring, schema
from notary.ledger.head import Head
from notary.ledger.page_ring import RingEntry
from notary.ledger.writing import write_event
from notary.programs.offline import main
from notary.units.runner import remembered
from notary.units.tasks import TaskOutcome
from tests.notary.running import ROOT, execute, stored
from tests.support.ledger_file import made_ledger

FIXTURE = ROOT / "tests" / "notary" / "backends" / "fixtures" / "d1d583e"
VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, event_type TEXT NOT NULL, time INTEGER NOT NULL, trace_id TEXT,
    principal TEXT, session_id TEXT, action_id TEXT, decision TEXT, bytes BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_time ON events (time);
CREATE INDEX events_by_trace ON events (trace_id, time);
CREATE INDEX events_by_session ON events (session_id, time);
CREATE INDEX events_by_principal ON events (principal, time);
CREATE INDEX events_by_action ON events (action_id, time);
CREATE INDEX events_by_decision ON events (decision, time) WHERE decision <> 'allow';
CREATE INDEX events_by_type ON events (event_type, time) WHERE event_type <> 'ActionCall';

CREATE TABLE receipts (
    seq INTEGER PRIMARY KEY, receipt_id TEXT NOT NULL UNIQUE, approval_id TEXT, bytes BLOB NOT NULL
) STRICT;
CREATE INDEX receipts_by_approval ON receipts (approval_id) WHERE approval_id IS NOT NULL;

CREATE TABLE intents (
    seq INTEGER PRIMARY KEY, intent_id TEXT NOT NULL, trace_id TEXT NOT NULL, action_id TEXT NOT NULL,
    principal TEXT NOT NULL, dispatched_at TEXT NOT NULL, grant_id TEXT NOT NULL UNIQUE, provider_module TEXT NOT NULL,
    plan_hash TEXT NOT NULL, approval_id TEXT
) STRICT;
CREATE INDEX intents_by_approval ON intents (approval_id) WHERE approval_id IS NOT NULL;

CREATE TABLE unresolved (intent_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL) STRICT;
"""
WITHOUT_TREE = (
    "DROP INDEX events_by_id", "ALTER TABLE events DROP COLUMN leaf", "ALTER TABLE intents DROP COLUMN leaf",
    "DROP TABLE tiles", "DROP TABLE checkpoints", "DELETE FROM meta WHERE key = 'history'",
)  # fmt: skip
WITH_REQUESTS = (
    "DROP TABLE quota_calls",
    "DROP TABLE quota_holds",
    "DROP TABLE quota_sessions",
    "DROP TABLE approvals",
    """
    CREATE TABLE approvals (
        seq INTEGER PRIMARY KEY, approval_id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, action_id TEXT NOT NULL,
        request_hash TEXT NOT NULL, state TEXT NOT NULL, created_at REAL NOT NULL, expires_at REAL NOT NULL,
        body TEXT NOT NULL, holder TEXT, outcome TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX approvals_pending ON approvals (session_id, action_id, request_hash) WHERE state = 'pending'",
    "CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE state = 'pending'",
    "CREATE INDEX approvals_claimed ON approvals (holder) WHERE state = 'claimed'",
    "CREATE INDEX approvals_by_state ON approvals (state, created_at, approval_id)",
    "CREATE INDEX approvals_by_age ON approvals (created_at, approval_id)",
    "CREATE INDEX approvals_over ON approvals (expires_at) WHERE state NOT IN ('pending', 'claimed')",
)
COPIED = ("events", "receipts", "intents", "unresolved")
LATER = "2027-01-01T00:00:00.000Z"
ANSWER = ("front-1", 7, b"\xc3", None, None, None)
WHOLE = "is intact: 5 events in one chain, 4 receipts with a valid signature, 1 unresolved intent."


@pytest.fixture(params=["1", "2", "3", "4", "5"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A ledger of an earlier version that a gateway of its time has used."""
    path = tmp_path / "ledger.sqlite3"
    if request.param == "2":
        shutil.copy(FIXTURE / "ledger.sqlite3", path)
        return path
    if request.param in ("3", "4", "5"):
        shutil.copy(FIXTURE / "ledger.sqlite3", path)
        made_ledger(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in WITH_REQUESTS if request.param == "5" else (*WITHOUT_TREE, *WITH_REQUESTS):
                connection.execute(statement)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (request.param,))
            if request.param == "3":
                connection.execute("DROP TABLE journal")
                connection.execute("DELETE FROM meta WHERE key = 'settled'")
                connection.execute("INSERT INTO last_unit VALUES (1, ?)", (msgspec.msgpack.encode([ANSWER]),))
        return path
    with closing(sqlite3.connect(path, isolation_level=None, uri=True)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(VERSION_1)
        connection.execute("ATTACH ? AS template", (f"file:{FIXTURE / 'ledger.sqlite3'}?immutable=1",))
        for table in ("meta", *COPIED):
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM template.{table}")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    return path


def evidence(path: Path) -> list[list[object]]:
    columns = {
        "intents": "seq, intent_id, trace_id, dispatched_at, grant_id, provider_module, plan_hash, approval_id",
        "events": "seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes",
    }
    return [stored(path, f"SELECT {columns.get(name, '*')} FROM {name} ORDER BY 1") for name in COPIED]


NOT_OF_BEFORE = "name <> 'sqlite_autoindex_intents_1'"
"""An older file keeps its unique index on grants, which can only be dropped with the whole table."""


def outline(path: Path) -> list[object]:
    """The tables and indexes of a file, in the order of their names, and the columns of each."""
    named = f"SELECT type, name, tbl_name FROM sqlite_master WHERE {NOT_OF_BEFORE} ORDER BY name"
    columns = """SELECT one.name, x.name, x.type, x."notnull", x.pk FROM sqlite_master AS one
    JOIN pragma_table_xinfo(one.name) AS x ORDER BY one.name, x.cid"""
    return [*stored(path, named), *stored(path, columns)]


def version(path: Path) -> str:
    (schema_version,) = stored(path, "SELECT value FROM meta WHERE key = 'schema'")
    return str(schema_version)


def audited(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of the auditor's command."""
    main([str(path), "--keys", str(keys_beside(path))])
    return capsys.readouterr().out


def keys_beside(path: Path) -> Path:
    keys = path.with_name("keys.json")
    keys.write_bytes((FIXTURE / "receipt-keys.jwks.json").read_bytes())
    return keys


def test_an_old_ledger_keeps_every_byte_of_evidence_and_becomes_like_a_new_one(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = evidence(old)
    assert WHOLE in audited(old, capsys)
    made_ledger(old)
    made_ledger(old)
    assert (version(old), evidence(old)) == (schema.SCHEMA_VERSION, before)
    assert WHOLE in audited(old, capsys)
    assert outline(old) == outline_of_new(tmp_path)


@pytest.mark.parametrize("old", ["3"], indirect=True)
def test_answers_of_a_notary_without_a_journal_are_repeated(old: Path) -> None:
    made_ledger(old)
    with closing(sqlite3.connect(old)) as connection:
        assert remembered(connection) == {("front-1", 7): TaskOutcome(msgspec.Raw(b"\xc3"))}


def requests_in(path: Path) -> set[str]:
    """Which requests of tests can be found in any byte of the file and its WAL."""
    raw = b"".join(one.read_bytes() for one in path.parent.glob(f"{path.name}*"))
    return {name.decode() for name in re.findall(rb"MARK-([a-z]+)-", raw)}


@pytest.mark.parametrize("old", ["3", "4", "5"], indirect=True)
@pytest.mark.parametrize("length", [10, 3000, 300_000])
def test_no_request_of_an_approval_that_had_ended_is_left_anywhere_in_a_file_that_is_brought_over(
    old: Path, length: int
) -> None:
    def row(name: str, state: str) -> tuple[str, ...]:
        plan = {"principal": "uid:1000", "epoch": 2, "request": f"MARK-{name}-" * (length // 8), "trace_id": "trc_1"}
        body = msgspec.json.encode({"plan": plan, "plan_hash": "sha256:1", "identity_method": "", "has_budget": True})
        return (f"apr_{name}", "ses", "act", name, state, "1.0", "2.0", body.decode(), "{}")

    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("PRAGMA secure_delete=OFF")
        for name, state in (("waits", "pending"), ("runs", "claimed"), ("no", "denied"), ("swept", "expired"),
                            ("yes", "approved"), ("late", "expired"), ("again", "failed")):  # fmt: skip
            columns = "approval_id, session_id, action_id, request_hash, state, created_at, expires_at, body, outcome"
            connection.execute(
                f"INSERT INTO approvals ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row(name, state)
            )
        kept = row("answered", "pending")[7].encode()
        connection.execute("INSERT OR REPLACE INTO last_unit VALUES (1, ?)", (kept,))
        connection.execute("DELETE FROM approvals WHERE approval_id = 'apr_swept'")
    assert {"no", "swept", "yes", "late", "again", "answered"} < requests_in(old)
    made_ledger(old)
    assert requests_in(old) == {"waits", "runs"}
    assert stored(old, "SELECT principal, epoch, state FROM approvals ORDER BY seq LIMIT 2") == [
        ("uid:1000", 2, "pending"), ("uid:1000", 2, "claimed"),
    ]  # fmt: skip
    (body,) = stored(old, "SELECT body FROM approvals WHERE approval_id = 'apr_no'")
    assert read_remains(body).plan_hash == "sha256:1"


@pytest.mark.parametrize("old", ["4"], indirect=True)
def test_a_killed_gateways_journal_goes_into_the_tree_too(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        (kept,) = connection.execute("SELECT value FROM meta WHERE key = 'head'").fetchone()
        head = msgspec.json.decode(kept, type=Head)
        entry = RingEntry()
        after = write_event(entry, head, AuditEvent(event_type="AdminDrain", event_id="evt_6", timestamp=LATER))
        entry.head = (after.seq, after.hash)
        # Entries of then had neither list of places.
        shorter = msgspec.msgpack.encode(msgspec.msgpack.decode(msgspec.msgpack.encode(entry))[:7])
        piece = page_ring.pieces_of(entry, 1)[0]
        header = page_ring._HEADER.pack(1, 0, 1, len(shorter))
        connection.execute("INSERT INTO journal VALUES (0, ?)", ((header + shorter).ljust(len(piece), b"\0"),))
    for _ in range(2):
        made_ledger(old)
        assert stored(old, "SELECT seq, event_id, leaf FROM events ORDER BY seq")[-1] == (6, "evt_6", None)
        assert stored(old, "SELECT value FROM meta WHERE key = 'history'") == ["[6,5]"]
    assert "is intact: 6 events" in audited(old, capsys)


DYING = """
import os, signal, sys
from pathlib import Path
from notary.backends.sqlite import SqliteDatabase
from notary.ledger import page_ring, schema
from notary.ledger.head import Head
from notary.ledger.page_ring import RingEntry
from notary.ledger.writing import write_event

def prepare(connection):
    schema.prepare(connection)
    print("brought to", schema.schema_version(connection), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

SqliteDatabase(Path(sys.argv[1]), prepare).open()
"""


def test_a_process_that_is_killed_before_the_commit_leaves_an_old_ledger_as_it_was(old: Path) -> None:
    before = (version(old), evidence(old), outline(old))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", DYING, str(old)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout) == (-signal.SIGKILL, f"brought to {schema.SCHEMA_VERSION}\n")
        assert (version(old), evidence(old), outline(old)) == before
    made_ledger(old)
    assert version(old) == schema.SCHEMA_VERSION


def test_a_broken_chain_stays_broken(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(old, "UPDATE events SET bytes = CAST(replace(bytes, 'allow', 'deny!') AS BLOB) WHERE seq = 3")
    for _ in range(2):
        assert "is broken at event evt_2" in audited(old, capsys)
        made_ledger(old)


@pytest.mark.parametrize("other", ["0", "7", "01", "", "1 ", "99"])
def test_every_other_version_is_refused_and_left_alone(old: Path, other: str) -> None:
    execute(old, "UPDATE meta SET value = ? WHERE key = 'schema'", other)
    tables = outline(old)
    with pytest.raises(DatabaseGone, match=f"its schema is {other}, known is 6"):
        made_ledger(old)
    assert (version(old), outline(old)) == (other, tables)


def test_a_database_of_something_else_is_no_ledger_and_an_empty_file_becomes_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    path.touch()
    made_ledger(path)
    os.unlink(path)
    execute(path, "CREATE TABLE budgets (x)")
    with pytest.raises(DatabaseGone, match="not a ledger"):
        made_ledger(path)


def tokens_in(path: Path) -> bool:
    """Whether a token of the test is in any byte of the file and its WAL."""
    return any(TOKEN in one.read_bytes() for one in path.parent.glob(f"{path.name}*"))


TOKEN = b"eyJ-a-token-of-a-lease"


@pytest.mark.parametrize("length", [1, 300])
def test_no_lease_token_is_left_in_a_file_whose_remembered_answers_held_some(tmp_path: Path, length: int) -> None:
    path = tmp_path / "ledger.sqlite3"
    made_ledger(path)
    answer = msgspec.msgpack.encode({"type": "Issued", "lease_jwt": TOKEN.decode() * length})
    row = ("front-1", 7, answer, None, None, None)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete=OFF")
        connection.execute("DELETE FROM meta WHERE key = 'answers_without_tokens'")
        page_ring.write(connection, page_ring.pieces_of(RingEntry(answers=[row]), 1), 0)
        connection.execute("INSERT INTO last_unit VALUES (1, ?)", (msgspec.msgpack.encode([row]),))
        connection.execute("CREATE TABLE gone (bytes BLOB)")
        connection.execute("INSERT INTO gone VALUES (?)", (answer * 9000,))
        connection.execute("DROP TABLE gone")
    assert tokens_in(path)
    made_ledger(path)
    assert not tokens_in(path)
    assert outline(path) == outline_of_new(tmp_path)


def outline_of_new(folder: Path) -> list[object]:
    """That of a file which this version made."""
    return outline(made_ledger(folder / "fresh.sqlite3"))


def test_each_ledger_has_a_name_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    paths = [made_ledger(tmp_path / name) for name in ("one", "other")]
    statement = "SELECT value FROM meta WHERE key = 'ledger_id'"
    names = [name for path in paths for name in stored(path, statement)]
    assert len(set(names)) == 2
    assert [name for path in paths for name in stored(made_ledger(path), statement)] == names


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TRIGGER hides AFTER INSERT ON unresolved BEGIN DELETE FROM unresolved; END", "it has a trigger hides"),
        ("CREATE VIEW beside AS SELECT * FROM events", "it has a view beside"),
    ],
)
def test_a_ledger_with_foreign_triggers_is_refused_and_left_alone(tmp_path: Path, statement: str, said: str) -> None:
    path = made_ledger(tmp_path / "ledger.sqlite3")
    execute(path, statement)
    before = stored(path, "SELECT sql FROM sqlite_master ORDER BY name")
    with pytest.raises(DatabaseGone, match=f"{said}, which no gateway makes"):
        made_ledger(path)
    assert stored(path, "SELECT sql FROM sqlite_master ORDER BY name") == before
