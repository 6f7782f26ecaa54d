"""A walk along a long chain: constant memory, and a break found at its end."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from contract.audit import ChainReport
from notary.ledger.chain import milliseconds, open_event
from notary.ledger.head import Head, write_head
from notary.reading.whole import WholeWalk
from notary.tree import tiles
from notary.tree.merkle import leaf_hash
from tests.notary.running import execute
from tests.notary.samples import make_event
from tests.support.ledger_file import made_ledger

LONG = 40_000
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


def grown(path: Path, count: int) -> None:
    """A ledger of so many events, written behind its back since that is many times faster."""
    with closing(sqlite3.connect(made_ledger(path))) as connection:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'events_by_*'").fetchall():
            connection.execute(f"DROP INDEX {name}")  # a walk needs none
        connection.executemany(_INSERT, chained(count))
        rows = connection.execute("SELECT bytes FROM events ORDER BY seq")
        while chunk := rows.fetchmany(4096):
            tiles.append(connection, [leaf_hash(data) for (data,) in chunk])
        connection.execute("UPDATE meta SET value = ? WHERE key = 'history'", (f"[{count},0]",))
        (last,) = connection.execute("SELECT bytes FROM events WHERE seq = ?", (count,)).fetchone()
        write_head(connection, Head(count, "sha256:" + sha256(last).hexdigest()))
        connection.commit()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def walked(path: Path) -> tuple[ChainReport, list[int]]:
    """A walk to its end, and how large this process was along it."""
    walk, sizes = WholeWalk(), list[int]()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        while walk.step(connection):
            if walk.chain.head.seq % 5_120 == 0 or not sizes:
                sizes.append(resident())
    return walk.report(), sizes


@pytest.mark.large
def test_a_long_walk_takes_no_more_memory_than_a_short_one_and_finds_a_break_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    grown(path, LONG)
    execute(path, "UPDATE events SET principal = 'another principal' WHERE seq = ?", LONG - 1)
    broken, sizes = walked(path)
    assert len(sizes) > 5
    assert max(sizes) - sizes[0] < 8 << 20, [size >> 20 for size in sizes]
    assert (broken.intact, broken.broken_at, broken.events_checked) == (False, f"evt_{LONG - 1:07d}", LONG - 2)
