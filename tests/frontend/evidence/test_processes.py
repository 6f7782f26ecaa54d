"""Several processes on one ledger, and processes that die in the middle."""

import os
import random
import sqlite3
import subprocess
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import trio

from tests.frontend.evidence.conftest import OpenLedger, Start, line_of
from tests.frontend.evidence.samples import record_call

ENOUGH = 400


def tell(child: "subprocess.Popen[str]", word: str) -> None:
    assert child.stdin is not None
    child.stdin.write(f"{word}\n")
    child.stdin.flush()


async def test_two_processes_never_fork_the_chain_and_take_turns(
    open_ledger: OpenLedger, ledger_path: Path, start: Start
) -> None:
    children = [start("write_calls", ledger_path, f"uid:{number}", str(ENOUGH), "8") for number in range(2)]
    for word in ("ready", "enough"):
        for child in children:
            assert await trio.to_thread.run_sync(line_of, child) == word
        for child in children:
            tell(child, word)
    counts = [int(await trio.to_thread.run_sync(line_of, child)) for child in children]
    ledger = await open_ledger()
    report = await ledger.verify()
    assert report.intact, report
    assert report.total_events == report.events_checked == sum(counts) >= 2 * ENOUGH
    assert await ledger.unresolved_count() == 0
    # They were at work at the same time, one after the other: whose event follows whose changes all along.
    with closing(sqlite3.connect(ledger_path)) as connection:
        writers = [row[0] for row in connection.execute("SELECT principal FROM events ORDER BY seq")]
    changes = sum(before != after for before, after in pairwise(writers))
    assert changes > ENOUGH // 10


async def test_a_ledger_stays_whole_whenever_its_writers_are_killed(
    open_ledger: OpenLedger, ledger_path: Path, start: Start
) -> None:
    chance = random.Random(os.urandom(8))
    said: list[str] = []

    def until_killed(victim: "subprocess.Popen[str]", lines: int) -> None:
        said.extend(line_of(victim) for _ in range(lines))
        victim.kill()
        assert victim.stdout is not None
        said.extend(line.strip() for line in victim.stdout.read().splitlines(keepends=True) if line.endswith("\n"))

    for _ in range(3):
        victims = [start("write_until_killed", ledger_path) for _ in range(2)]
        async with trio.open_nursery() as nursery:
            for victim in victims:
                nursery.start_soon(trio.to_thread.run_sync, until_killed, victim, 1 + chance.randrange(150))
    ledger = await open_ledger()
    report = await ledger.verify()
    assert report.intact, report
    with closing(sqlite3.connect(ledger_path)) as connection:
        kept = {f"{receipt} {event}" for receipt, event in connection.execute(
            "SELECT receipt_id, event_id FROM receipts JOIN events USING (seq)"
        )}  # fmt: skip
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in (
            "intents", "unresolved", "receipts", "events",
        )]  # fmt: skip
    assert set(said) <= kept
    assert len(said) > 10
    intents, unresolved, receipts, events = counts
    # A writer that was killed between intent and receipt leaves its intent, at most one for each of its tasks.
    assert intents == receipts + unresolved
    assert receipts == events == report.total_events
    assert unresolved <= 6 * 6
    await record_call(ledger)
    assert (await ledger.verify()).intact
