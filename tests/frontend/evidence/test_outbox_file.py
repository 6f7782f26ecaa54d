"""The outbox in the ledger's file: how it fails, and processes that die with deliveries in their hands."""

import os
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from frontend.evidence.ledger import LedgerUnavailable
from frontend.evidence.outbox import Outbox
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.conftest import OpenLedger, Start, line_of, spoil, stored
from tests.frontend.evidence.samples import (
    NOW_MS,
    UNTIL,
    claim,
    claim_one,
    make_event,
    make_rows,
    notify,
    record_call,
)


async def test_who_was_killed_with_a_claim_loses_it_at_its_end(
    ledger: SqliteLedger, ledger_path: Path, start: Start
) -> None:
    for _ in range(3):
        await notify(ledger, "chat")
    child = start("claim_and_hang", ledger_path)
    assert await trio.to_thread.run_sync(line_of, child) == "3"
    child.kill()
    await trio.to_thread.run_sync(child.wait)
    assert await ledger.outbox.waiting() == {"chat": 3}
    assert await claim(ledger, now=UNTIL - 1) == []
    assert [delivery.attempt for delivery in await claim(ledger, now=UNTIL)] == [2, 2, 2]


async def test_whenever_its_users_are_killed_each_delivery_is_in_one_place(
    open_ledger: OpenLedger, ledger_path: Path, start: Start
) -> None:
    chance = random.Random(os.urandom(8))
    said: list[str] = []

    def until_killed(victim: Any, lines: int) -> None:
        said.extend(line_of(victim) for _ in range(lines))
        victim.kill()
        said.extend(line.strip() for line in victim.stdout.read().splitlines(keepends=True) if line.endswith("\n"))

    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                victim = start("give_up_until_killed", ledger_path)
                nursery.start_soon(trio.to_thread.run_sync, until_killed, victim, 1 + chance.randrange(100))
    ledger = await open_ledger()
    written = stored(ledger_path, "SELECT event_id FROM events")
    given_up = stored(ledger_path, "SELECT event_id FROM given_up")
    assert sorted(written) == sorted(given_up + stored(ledger_path, "SELECT event_id FROM outbox"))
    assert set(said) <= set(given_up)
    assert len(said) > 3
    assert (await ledger.verify()).intact


async def test_on_a_disk_without_room_nothing_is_claimed_or_settled(ledger_path: Path, start: Start) -> None:
    child = start("claim_on_full_disk", ledger_path)
    said = await trio.to_thread.run_sync(lambda: child.communicate(timeout=120)[0].splitlines())
    assert said == ["unavailable"] * 5 + ["waiting: 3", "attempts: [1, 1]", "waiting: 2"]
    assert stored(ledger_path, "SELECT * FROM given_up") == []


async def use_all(outbox: Outbox, held: Any) -> None:
    """Everything that writes must say that it can't."""
    for task in (
        outbox.claim("chat", now=NOW_MS, until=UNTIL, limit=5), outbox.delivered(held), outbox.put_off(held, NOW_MS),
        outbox.give_up(held, at=NOW_MS, error="no"), outbox.give_up_all("chat", at=NOW_MS, error="no"),
    ):  # fmt: skip
        with pytest.raises(LedgerUnavailable):
            await task


async def test_while_the_file_is_locked_nothing_is_claimed_and_then_it_goes_on(
    ledger: SqliteLedger, open_ledger: OpenLedger, connection: sqlite3.Connection
) -> None:
    hasty = await open_ledger(lock_seconds=0.05)
    for _ in range(2):
        await notify(ledger, "chat")
    (held,) = await claim(hasty, limit=1)
    connection.execute("BEGIN IMMEDIATE")
    await use_all(hasty.outbox, held)
    assert await hasty.outbox.waiting() == {"chat": 2}
    connection.execute("ROLLBACK")
    assert (await claim_one(hasty)).attempt == 1
    await hasty.outbox.delivered(held)
    assert await hasty.outbox.waiting() == {"chat": 1}


async def test_an_outbox_that_was_taken_away_is_missed(
    ledger: SqliteLedger, open_ledger: OpenLedger, ledger_path: Path
) -> None:
    other = await open_ledger()
    await notify(ledger, "chat")
    held = await claim_one(ledger)
    os.unlink(ledger_path)
    await use_all(ledger.outbox, held)
    for question in (other.outbox.waiting(), other.outbox.next_due("chat")):
        with pytest.raises(LedgerUnavailable):
            await question
    await ledger.close()
    await use_all(ledger.outbox, held)


async def test_damage_is_an_error_of_claims(ledger: SqliteLedger, open_ledger: OpenLedger, ledger_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            event = make_event()
            nursery.start_soon(ledger.append, event, make_rows(event, "chat", payload="x" * 3500))
    await ledger.close()
    spoil(ledger_path)
    again = await open_ledger()
    with pytest.raises(LedgerUnavailable):
        for _ in range(20):
            await claim(again, limit=10)


async def test_a_delivery_that_makes_no_sense_is_no_hindrance_to_evidence(
    ledger: SqliteLedger, connection: sqlite3.Connection
) -> None:
    await notify(ledger, "chat", "pager")
    connection.execute("UPDATE outbox SET payload = CAST(x'ff' AS TEXT) WHERE endpoint = 'chat'")
    connection.execute("BEGIN IMMEDIATE")
    failed = []

    async def claim_it() -> None:
        with pytest.raises(LedgerUnavailable, match="makes no sense"):
            await claim(ledger)
        failed.append("claim")

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(claim_it)
            nursery.start_soon(record_call, ledger)
        nursery.start_soon(claim_one_of_the_pager, ledger)
        await wait_all_tasks_blocked()
        connection.execute("ROLLBACK")
    assert len(failed) == 5
    report = await ledger.verify()
    assert (report.intact, report.total_events) == (True, 6)
    assert await ledger.outbox.give_up_all("chat", at=NOW_MS, error="no such endpoint") == 1


async def claim_one_of_the_pager(ledger: SqliteLedger) -> None:
    assert len(await claim(ledger, "pager")) == 1
