"""A walk along a long chain: constant memory, a log that tells how far it is, and a break found at its end."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from frontend.evidence import progress
from frontend.evidence.events import milliseconds, open_event
from frontend.evidence.ledger import VerifyReport
from frontend.evidence.progress import Progress
from frontend.evidence.schema import Head, write_head
from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.samples import make_event
from tests.support.logs import capture_logs

LONG = 80_000
PAGE = os.sysconf("SC_PAGE_SIZE")
_INSERT = """
INSERT INTO events (seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def chained(count: int) -> Iterator[tuple[object, ...]]:
    """Rows of so many events, each with the hash of the one before."""
    event = make_event(event_id="evt_0000000", reason="x" * 200)
    opened = open_event(event)
    fixed = (event.event_type, milliseconds(event.timestamp), event.trace_id, event.principal, event.session_id,
             event.action_id, event.decision)  # fmt: skip
    link = None
    for seq in range(1, count + 1):
        event_id = f"evt_{seq:07d}"
        stored = opened.closed(link).replace(b"evt_0000000", event_id.encode())
        yield (seq, event_id, *fixed, stored)
        link = "sha256:" + sha256(stored).hexdigest()


async def grown(path: Path, count: int) -> None:
    """A ledger of so many events, written behind its back since that is many times faster."""
    await (await SqliteLedger.open(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'events_by_*'").fetchall():
            connection.execute(f"DROP INDEX {name}")  # a walk needs none
        connection.executemany(_INSERT, chained(count))
        (last,) = connection.execute("SELECT bytes FROM events WHERE seq = ?", (count,)).fetchone()
        write_head(connection, Head(count, "sha256:" + sha256(last).hexdigest()))
        connection.commit()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


async def test_a_long_walk_takes_no_more_memory_than_a_short_one_and_tells_how_far_it_is(
    ledger_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TELL_SECONDS", 0.05)
    await grown(ledger_path, LONG)
    ledger = await SqliteLedger.open(ledger_path)
    walk, sizes = Progress(), list[int]()

    def hear(events: int) -> None:
        walk.hear(events)
        if events % 10_240 == 0 or not sizes:
            sizes.append(resident())

    with capture_logs() as lines:
        report = await ledger.verify(hear)
        walk.end(report)
    await ledger.close()
    assert (report.intact, report.events_checked) == (True, LONG)
    assert len(sizes) > 5
    assert max(sizes) - sizes[0] < 16 << 20, [size >> 20 for size in sizes]
    told = [line["events"] for line in lines if line["event"].startswith("walking the chain: ")]
    assert told == sorted(set(told))
    assert len(told) >= 2
    assert (lines[-1]["event"], lines[-1]["events"]) == ("the chain is intact", LONG)
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE events SET principal = 'somebody else' WHERE seq = ?", (LONG - 1,))
    ledger = await SqliteLedger.open(ledger_path)
    broken = await ledger.verify()
    await ledger.close()
    assert (broken.intact, broken.broken_at, broken.events_checked) == (False, f"evt_{LONG - 1:07d}", LONG - 2)


def test_a_short_walk_says_one_line_and_a_long_one_a_line_now_and_then() -> None:
    now = 100.0
    walk = Progress(lambda: now)
    with capture_logs() as lines:
        for step in range(1, 24):
            now += 1.0
            walk.hear(256 * step)
        walk.end(VerifyReport(
            intact=False, events_checked=5888, broken_at="evt_1", total_events=9000, verified_links=5887,
            reason="prev_hash does not match",
        ))  # fmt: skip
    assert [line["event"] for line in lines] == [
        *(f"walking the chain: {256 * seconds} events so far" for seconds in (5, 10, 15, 20)),
        "the chain is broken",
    ]
    assert [line["log_level"] for line in lines] == ["info"] * 4 + ["error"]
    assert lines[0]["per_second"] == 256
    assert (lines[-1]["broken_at"], lines[-1]["total"], lines[-1]["seconds"]) == ("evt_1", 9000, 23.0)
