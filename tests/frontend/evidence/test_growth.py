"""A large ledger costs no more to write than a small one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import trio

from frontend.evidence.sqlite import SqliteLedger
from tests.frontend.evidence.samples import record_call

LARGE = 300_000
CALLS = 100
FRAME = 24 + 4096

_FILL = f"""
WITH RECURSIVE n (i) AS (SELECT coalesce((SELECT max(seq) FROM events), 0) + 1 UNION ALL SELECT i + 1 FROM n
    WHERE i < {LARGE})
INSERT INTO events (seq, event_id, event_type, time, trace_id, principal, session_id, action_id, decision, bytes)
SELECT i, printf('evt_%036d', i), 'ActionCall', 1700000000000 + i, printf('trc_0000%032d', i), 'uid:' || i % 50,
    printf('ses_0000%032d', i / 20), 'action' || i % 40, 'allow', zeroblob(60) FROM n
"""


async def frames_for_calls(path: Path) -> float:
    """Pages that one call writes, on average: what a commit costs besides its one wait for the disk."""
    ledger = await SqliteLedger.open(path)
    wal = path.with_name(path.name + "-wal")
    # The file is new or has just been copied into, so that the WAL grows from where it is.
    await record_call(ledger)
    before = _size(wal)
    for _ in range(CALLS):
        await record_call(ledger)
    grown = (_size(wal) - before) / FRAME
    await ledger.close()
    return grown / CALLS


def _size(path: Path) -> int:
    return path.stat().st_size


async def test_a_call_writes_as_many_pages_at_300_000_events_as_at_a_thousand(ledger_path: Path) -> None:
    ledger = await SqliteLedger.open(ledger_path)
    async with trio.open_nursery() as nursery:
        for _ in range(1000):
            nursery.start_soon(record_call, ledger)
    await ledger.close()
    small = await frames_for_calls(ledger_path)
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(_FILL)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("UPDATE meta SET value = json_set(value, '$.seq', ?) WHERE key = 'head'", (LARGE,))
    large = await frames_for_calls(ledger_path)
    assert 5 < large <= small * 1.1, (small, large)
