"""The embedded ledger and its file.

How many commits it makes, what it leaves when it is closed, how it fails while the file is locked, full, gone or
damaged, and which files it refuses to open.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from frontend.evidence.ledger import LedgerUnavailable
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.conftest import OpenLedger, Start, commits_in_wal, spoil, stored
from tests.frontend.evidence.samples import make_event, make_intent, record_call


def put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_operations_that_wait_at_the_same_time_share_a_commit(ledger: SqliteLedger, ledger_path: Path) -> None:
    before = commits_in_wal(ledger_path)
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(ledger.append, make_event())
            await wait_all_tasks_blocked()
            stranger.execute("ROLLBACK")
    assert len(stored(ledger_path)) == 30
    # One for those that were there when the thread began, one for those that came while it waited for the lock.
    assert commits_in_wal(ledger_path) - before <= 2


async def test_everything_is_there_after_closing_and_opening(open_ledger: OpenLedger) -> None:
    first = await open_ledger()
    _, receipt, _ = await record_call(first)
    open_intent = make_intent()
    await first.begin(open_intent)
    await first.close()
    again = await open_ledger()
    assert await again.receipt(receipt.receipt_id) == receipt
    assert [view.intent_id for view in await again.unresolved(5)] == [open_intent.intent_id]
    await again.append(make_event())
    report = await again.verify()
    assert (report.intact, report.total_events) == (True, 2)


async def test_closing_leaves_one_whole_file(ledger: SqliteLedger, ledger_path: Path) -> None:
    await record_call(ledger)
    await ledger.receipt("rcpt_none")
    await ledger.close()
    assert not ledger_path.with_name("ledger.sqlite3-wal").exists()
    with pytest.raises(LedgerUnavailable):
        await ledger.append(make_event())


async def test_while_the_file_is_locked_nothing_is_written_and_then_it_goes_on(
    open_ledger: OpenLedger, ledger_path: Path
) -> None:
    await (await open_ledger()).append(make_event())
    ledger = await open_ledger(lock_seconds=0.05)
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        for write in (ledger.append(make_event()), ledger.begin(make_intent()), record_call(ledger)):
            with pytest.raises(LedgerUnavailable, match="locked"):
                await write
        assert not await ledger.health()
        assert await ledger.unresolved_count() == 0
        stranger.execute("ROLLBACK")
    assert await ledger.health()
    await ledger.append(make_event())
    report = await ledger.verify()
    assert (report.intact, report.total_events) == (True, 2)


async def test_a_disk_without_room_fails_closed_and_is_used_again_when_it_has_room(
    ledger_path: Path, start: Start
) -> None:
    child = start("fill_disk", ledger_path)
    said = await trio.to_thread.run_sync(lambda: child.communicate(timeout=120)[0].splitlines())
    assert said[0] == "healthy: True"
    assert said[1].startswith("unavailable: ledger: ")
    assert said[2:] == ["healthy: False", "healthy: True", "intact: True, kept exactly what was written: True"]


async def test_a_ledger_that_was_taken_away_is_missed_and_not_made_again(
    ledger: SqliteLedger, ledger_path: Path
) -> None:
    await ledger.append(make_event())
    os.unlink(ledger_path)
    with pytest.raises(LedgerUnavailable):
        await ledger.append(make_event())
    assert not await ledger.health()
    assert "ledger.sqlite3" not in os.listdir(ledger_path.parent)


async def test_damage_is_an_error_of_writes_and_reads_and_a_finding_of_verify(
    ledger: SqliteLedger, open_ledger: OpenLedger, ledger_path: Path
) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(300):
            nursery.start_soon(record_call, ledger)
    await ledger.close()
    spoil(ledger_path)
    again = await open_ledger()
    report = await again.verify()
    assert not report.intact
    assert report.broken_at is not None
    with pytest.raises(LedgerUnavailable):
        for _ in range(50):
            await record_call(again)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00" + b"\xff" * 5000, b"hello" * 1000])
async def test_only_an_empty_file_becomes_a_ledger(ledger_path: Path, content: bytes) -> None:
    put(ledger_path, content)
    if content:
        with pytest.raises(LedgerUnavailable):
            await SqliteLedger.open(ledger_path)
        return
    ledger = await SqliteLedger.open(ledger_path)
    await ledger.append(make_event())
    await ledger.close()


async def test_a_ledger_of_another_version_is_refused(ledger: SqliteLedger, ledger_path: Path) -> None:
    await ledger.close()
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(LedgerUnavailable, match="schema is 99"):
        await SqliteLedger.open(ledger_path)


async def test_a_store_is_no_ledger(ledger_path: Path) -> None:
    with closing(sqlite3.connect(ledger_path)) as connection:
        connection.execute("CREATE TABLE budgets (x)")
    with pytest.raises(LedgerUnavailable, match="not a ledger"):
        await SqliteLedger.open(ledger_path)
