"""Ledgers of the version before: brought to this one when they are opened, whole or not at all."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from frontend.evidence.audit import check, open_read_only
from frontend.evidence.ledger import AlreadyRecorded, GrantConsumed, LedgerUnavailable
from frontend.evidence.offline import main
from frontend.evidence.signing import ReceiptKeys
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.conftest import Start, line_of, stored
from tests.frontend.evidence.samples import (
    SIGNER,
    claim_one,
    make_event,
    make_intent,
    make_receipt,
    notify,
    record_call,
)

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
COPIED = ("meta", "events", "receipts", "intents", "unresolved")
CALLS = 20


@pytest.fixture
def old(tmp_path: Path, ledger_path: Path) -> Path:
    """A ledger of version 1 that a gateway of its time has used: calls, an event, an intent without a receipt."""
    template = tmp_path / "template.sqlite3"

    async def write() -> None:
        ledger = await SqliteLedger.open(template)
        for _ in range(CALLS):
            await record_call(ledger)
        await ledger.append(make_event(event_type="AdminDrain"))
        await ledger.begin(make_intent(intent_id="intent_open", grant_id="grant_open"))
        await ledger.close()

    trio.run(write)
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(VERSION_1)
        connection.execute("ATTACH ? AS template", (str(template),))
        for table in COPIED:
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM template.{table}")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    template.unlink()
    return ledger_path


def everything(path: Path) -> dict[str, list[object]]:
    """All evidence that a file holds, the version apart."""
    kept: dict[str, list[object]] = {table: stored(path, f"SELECT * FROM {table} ORDER BY 1") for table in COPIED}
    kept["meta"] = [row for row in kept["meta"] if row != ("schema", "1") and row != ("schema", "2")]
    return kept


def outline(path: Path) -> list[object]:
    """The tables and indexes of a file, in the order of their names."""
    return stored(path, "SELECT name, sql FROM sqlite_master ORDER BY name")


def version(path: Path) -> str:
    (found,) = stored(path, "SELECT value FROM meta WHERE key = 'schema'")
    return str(found)


def checked(path: Path) -> tuple[int, int, int, bool]:
    """What the offline check counts, and whether it found nothing wrong."""
    with closing(open_read_only(path)) as connection:
        findings = check(connection, ReceiptKeys(SIGNER.jwks()), lambda _done, _total: None)
    return findings.events, findings.receipts, findings.unresolved, findings.broken is None


WHOLE = (CALLS + 1, CALLS, 1, True)


async def test_a_ledger_of_version_1_keeps_every_byte_of_evidence(old: Path, tmp_path: Path) -> None:
    before = everything(old)
    assert checked(old) == WHOLE
    ledger = await SqliteLedger.open(old)
    assert version(old) == "2"
    assert everything(old) == before
    assert checked(old) == WHOLE
    report = await ledger.verify()
    assert (report.intact, report.total_events) == (True, CALLS + 1)
    await ledger.close()
    fresh = await SqliteLedger.open(tmp_path / "fresh.sqlite3")
    await fresh.close()
    assert outline(old) == outline(tmp_path / "fresh.sqlite3")


async def test_a_ledger_of_version_1_goes_on_where_it_was(old: Path) -> None:
    ledger = await SqliteLedger.open(old)
    (view,) = await ledger.unresolved(10)
    assert view.intent_id == "intent_open"
    with pytest.raises(GrantConsumed):
        await ledger.begin(make_intent(grant_id="grant_open"))
    receipt = make_receipt(grant_id="grant_open")
    event = make_event(receipt_id=receipt.receipt_id, intent_id="intent_open", grant_id="grant_open")
    await ledger.record(receipt=receipt, event=event, intent_id="intent_open")
    with pytest.raises(AlreadyRecorded):
        await ledger.record(receipt=receipt, event=event, intent_id="intent_open")
    await notify(ledger, "chat")
    await ledger.outbox.give_up(await claim_one(ledger), at=1, error="no")
    assert await ledger.outbox.waiting() == {}
    assert (await ledger.verify()).intact
    await ledger.close()
    again = await SqliteLedger.open(old)
    assert len(stored(old, "SELECT * FROM given_up")) == 1
    await again.close()
    assert checked(old) == (CALLS + 3, CALLS + 1, 0, True)


async def test_fronts_that_open_an_old_ledger_at_once_all_have_it(old: Path) -> None:
    before = everything(old)
    opened: list[SqliteLedger] = []

    async def open_it() -> None:
        opened.append(await SqliteLedger.open(old))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(open_it)
    assert everything(old) == before
    for ledger in opened:
        await notify(ledger, "chat")
        await ledger.close()
    assert checked(old) == (CALLS + 6, CALLS, 1, True)


async def test_a_process_that_is_killed_on_the_way_leaves_version_1_as_it_was(old: Path, start: Start) -> None:
    before, tables = everything(old), outline(old)
    for _ in range(2):
        child = start("open_and_die", old)
        assert await trio.to_thread.run_sync(line_of, child) == "brought to 2"
        await trio.to_thread.run_sync(child.wait)
        assert version(old) == "1"
        assert (everything(old), outline(old)) == (before, tables)
    ledger = await SqliteLedger.open(old)
    assert (await ledger.verify()).intact
    await ledger.close()
    assert (everything(old), version(old)) == (before, "2")


async def test_a_broken_chain_stays_broken(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE events SET bytes = CAST(replace(bytes, 'allow', 'deny!') AS BLOB) WHERE seq = 7")
    assert checked(old)[3] is False
    ledger = await SqliteLedger.open(old)
    assert (await ledger.verify()).intact is False
    await ledger.close()
    assert checked(old)[3] is False


def test_the_auditors_command_reads_version_1(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(SIGNER.jwks()))
    assert main([str(old), "--keys", str(keys)]) == 0
    assert f"is intact: {CALLS + 1} events in one chain" in capsys.readouterr().out
    assert version(old) == "1"


@pytest.mark.parametrize("other", ["0", "3", "01", "", "1 "])
async def test_every_other_version_is_refused_and_left_alone(old: Path, other: str) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (other,))
    tables = outline(old)
    with pytest.raises(LedgerUnavailable, match=f"its schema is {other}, known is 2"):
        await SqliteLedger.open(old)
    assert (version(old), outline(old)) == (other, tables)
