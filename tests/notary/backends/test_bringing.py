"""A state folder of an older version, which kept proofs, budgets, approvals and the epoch in a separate file.

`fixtures/d1d583e` was written by the gateway of that commit: four calls, one of them approved, with receipts; an intent
without one; a delivery that waits and one that was given up; three proofs, three budgets, an approval in each state;
epoch 2. Its keys sign nothing else.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from ipc.operations.calls import ProofRecord, UseProof, Withdraw
from ipc.operations.deliveries import NextDelivery
from ipc.operations.evidence import ShowReceipt, TraceOfApproval
from ipc.operations.holds import GetHold, ListHolds, OrphanedHolds
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadBudget, ReadEpoch
from ipc.operations.status import ReadLedger
from notary.backends.bringing import bring_store_over
from notary.backends.sqlite import SqliteDatabase
from notary.database import DatabaseGone
from notary.ledger import schema
from tests.notary.conftest import StartNotary
from tests.notary.running import ROOT, execute, stored, walk
from tests.notary.samples import NOW, claim, hooks, record_call
from tests.support.asking import Told
from tests.support.notary_thread import SMALL_WAL

FIXTURE = Path(__file__).parent / "fixtures" / "d1d583e"
LEDGER = ("events", "receipts", "intents", "unresolved", "outbox", "given_up")
STORE = ("proofs", "budgets", "approvals", "epochs")
COLUMNS = {
    "proofs": "key, expires_at",
    "intents": (
        "intent_id, trace_id, action_id, principal, dispatched_at, grant_id, provider_module, plan_hash, approval_id,"
        " seq"
    ),
    "approvals": (
        "seq, approval_id, session_id, action_id, request_hash, state, created_at, expires_at, holder, outcome"
    ),
    "events": "seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes",
}
"""The columns of these tables that the older version had, and filled as this one does."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the folder, as private as it was, with the files by which fronts of then took turns."""
    folder = tmp_path / "state"
    shutil.copytree(FIXTURE, folder)
    folder.chmod(0o700)
    (folder / "keys").chmod(0o700)
    for name in ("store.sqlite3", "ledger.sqlite3"):
        (folder / f"{name}.turn").touch()
        (folder / f"{name}.next").touch()
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o600)
    return folder


def rows(path: Path, tables: tuple[str, ...]) -> dict[str, list[object]]:
    """The rows of these tables, in the columns that every version has."""
    return {table: stored(path, f"SELECT {COLUMNS.get(table, '*')} FROM {table} ORDER BY 1") for table in tables}


@cache
def everything() -> dict[str, list[object]]:
    """The rows of the folder's databases, read from a copy because SQLite puts files of its own beside a database."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, store = (Path(shutil.copy(FIXTURE / name, folder)) for name in ("ledger.sqlite3", "store.sqlite3"))
        return rows(ledger, LEDGER) | rows(store, STORE)


def part(tables: tuple[str, ...]) -> dict[str, list[object]]:
    """The fixture's rows in these tables."""
    return {table: everything()[table] for table in tables}


def whole(folder: Path) -> bool:
    """Everything is in the one file, once, and nothing is beside it but what SQLite makes."""
    assert rows(folder / "ledger.sqlite3", (*LEDGER, *STORE)) == everything()
    return {path.name for path in folder.iterdir()} <= {
        "keys", "operator.pem", "receipt-keys.jwks.json", "lease-keys.jwks.json", "ledger.sqlite3", "checkpoints",
        "checkpoint-keys.jwks.json",
        "ledger.sqlite3-wal", "ledger.sqlite3-shm",
    }  # fmt: skip


def brought(folder: Path) -> None:
    """Open the folder as a notary does at its start."""
    database = SqliteDatabase(folder / "ledger.sqlite3", schema.prepare, SMALL_WAL)
    database.open()
    try:
        bring_store_over(database, folder / "store.sqlite3")
    finally:
        database.close()


def test_everything_is_there_after_the_first_start_and_after_each_other(old: Path) -> None:
    for _ in range(3):
        brought(old)
        assert whole(old)


def test_a_notary_goes_on_where_the_old_gateway_was(old: Path, start_notary: StartNotary) -> None:
    notary = start_notary(old.name, webhooks=hooks("chat"))
    front = notary.front
    assert whole(old)
    report = walk(front)
    assert (report.intact, report.total_events) == (True, 5)
    assert front.ask(ReadEpoch()) == front.in_force[0].epoch == 2
    assert front.in_force[0].newest_evidence == NOW + 10
    assert [front.ask(UseProof(ProofRecord(f"proof-{number}", NOW))).is_fresh for number in range(3)] == [False] * 3
    assert front.ask(UseProof(ProofRecord("another", NOW))).is_fresh
    assert [front.ask(ReadBudget(name)).remaining for name in ("ses_whole", "ses_used", "ses_empty")] == [5, 2, 0]
    # The older version did not store the epoch of a pending hold, so the hold has ended.
    listed = front.ask(ListHolds(None, 9)).approvals
    assert [one.state for one in listed] == ["denied", "approved", "claimed", "expired"]
    assert [one.approval_id for one in front.ask(OrphanedHolds(("front-2",)))] == ["apr_1"]
    assert front.ask(GetHold("apr_0")).body == '{"plan":{"principal":"uid:1000"},"n":0}'
    assert front.ask(TraceOfApproval("apr_2")).receipt_id == "rcpt_2"
    assert [front.ask(ShowReceipt(f"rcpt_{n}")).signature_status for n in range(4)] == ["verified"] * 4
    assert front.ask(ReadLedger()).waiting == {"chat": 1}
    assert front.ask(NextDelivery("chat")) == (NOW + 1) * 1000
    assert [one.event_id for one in claim(front, now=int(NOW + 1) * 1000)] == ["evt_1"]
    record_call(front, epoch=2)
    assert walk(front).intact


def test_an_intent_of_the_old_gateway_stays_unresolved_for_a_person_to_look_at(
    old: Path, start_notary: StartNotary
) -> None:
    front = start_notary(old.name).front
    (view,) = front.ask(ListUnresolved(5))
    assert (view.intent_id, view.grant_id) == ("intent_open", "grant_open")
    with pytest.raises(Told) as told:
        front.ask(Withdraw("intent_open", "error", "overloaded"))
    assert told.value.problem == "refused"
    assert front.ask(ReadLedger()).unresolved == 1


# ------------------------------------------------------------------ deaths on the way

DYING = """
import os, signal, sqlite3, sys, traceback
from pathlib import Path
from notary.backends import bringing
from notary.backends.sqlite import SqliteDatabase
from notary.ledger import history, schema
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf

left = [0]

def die(*_):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def prepare(connection):
    connection.set_trace_callback(die)
    schema.prepare(connection)
    connection.set_trace_callback(None)

connect, unlink = bringing.connect, Path.unlink

def traced(*arguments, **named):
    connection = connect(*arguments, **named)
    connection.set_trace_callback(die)
    return connection

def bring(folder):
    database = SqliteDatabase(folder / "ledger.sqlite3", prepare)
    database.open()
    bringing.bring_store_over(database, folder / "store.sqlite3")
    database.close()

bringing.connect = traced
Path.unlink = lambda self, **named: (die(), unlink(self, **named))[1]
for line in sys.stdin:
    folder, left[0] = Path(line.split()[0]), int(line.split()[1])
    if os.fork() == 0:
        try:
            bring(folder)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.fixture
def killer() -> Iterator["subprocess.Popen[str]"]:
    """Told a folder and a step, it brings the folder over in a process that is killed before that statement or
    removal, and says the exit code; 0 if the process came to its end."""
    command = [sys.executable, "-c", DYING]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def died(killer: "subprocess.Popen[str]", folder: Path, step: int) -> bool:
    """Whether the process was killed before it came to its end."""
    assert killer.stdin is not None
    assert killer.stdout is not None
    killer.stdin.write(f"{folder} {step}\n")
    killer.stdin.flush()
    code = int(killer.stdout.readline())
    assert code in (0, -signal.SIGKILL)
    return code != 0


def test_whenever_it_is_killed_the_next_start_has_everything_once(
    old: Path, tmp_path: Path, killer: "subprocess.Popen[str]"
) -> None:
    deaths, between = 0, 0
    for step in range(200):
        folder = tmp_path / f"attempt-{step}"
        shutil.copytree(old, folder)
        if not died(killer, folder, step):
            break
        deaths += 1
        with closing(sqlite3.connect(folder / "ledger.sqlite3")) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            is_here = "last_unit" in tables and connection.execute("SELECT 1 FROM meta WHERE key = 'store'").fetchone()
        if is_here:
            between += (folder / "store.sqlite3").exists()
        else:
            assert rows(folder / "store.sqlite3", STORE) == part(STORE)
        brought(folder)
        assert whole(folder)
    assert deaths > 15
    assert between >= 1, "one of them was killed after the commit and before the old file was gone"


def test_an_old_file_left_by_a_kill_undoes_no_later_write(old: Path, tmp_path: Path, start_notary: StartNotary) -> None:
    kept = shutil.copy(old / "store.sqlite3", tmp_path / "kept")
    start_notary(old.name).front.ask(UseProof(ProofRecord("new", NOW)))
    shutil.copy(kept, old / "store.sqlite3")
    (old / "store.sqlite3").chmod(0o600)
    brought(old)
    assert not (old / "store.sqlite3").exists()
    assert len(stored(old / "ledger.sqlite3", "SELECT * FROM proofs")) == 4


# ------------------------------------------------------------------ what is refused


def pragma(name: str, number: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        execute(folder / name, f"PRAGMA user_version={number}")

    return change


def newer_ledger(folder: Path) -> None:
    execute(folder / "ledger.sqlite3", "UPDATE meta SET value = '7' WHERE key = 'schema'")


def torn(folder: Path) -> None:
    (folder / "store.sqlite3").write_bytes(b"SQLite format 3\x00" + os.urandom(50_000))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (newer_ledger, "not a ledger of this version: its schema is 7, known is 6"),
        (pragma("store.sqlite3", 2), "not a store of an earlier version: its schema is 2"),
        (pragma("store.sqlite3", 0), "not a store of an earlier version: its schema is 0"),
        (torn, "store.sqlite3: could not be brought over: "),
    ],
    ids=["newer ledger", "newer store", "no store", "torn"],
)
def test_an_unknown_file_is_refused_with_a_sentence_and_left_alone(
    old: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    spoil(old)
    store = (old / "store.sqlite3").read_bytes()
    for _ in range(2):
        with pytest.raises(DatabaseGone, match=sentence):
            brought(old)
    assert (old / "store.sqlite3").read_bytes() == store
    assert rows(old / "ledger.sqlite3", LEDGER) == part(LEDGER)
