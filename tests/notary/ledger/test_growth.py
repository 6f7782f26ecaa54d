"""A large ledger costs no more to write than a small one."""

from dataclasses import replace

import pytest

from ipc.texts.canonical import sha256_hex
from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running, query
from tests.notary.samples import make_open, record_call

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


def frames_for_calls(notary: Running) -> float:
    """Pages that one call writes, on average: what its two commits cost besides their waits for the disk."""
    wal = notary.path.with_name(notary.path.name + "-wal")
    front = notary.restart()  # the file has just been copied into, so that the WAL grows from where it is
    record_call(front)
    before = wal.stat().st_size
    for _ in range(CALLS):
        record_call(front)
    query(front, limit=1)  # brings all of them to their tables
    return (wal.stat().st_size - before) / FRAME / CALLS


@pytest.mark.large
def test_a_call_writes_as_many_pages_at_300_000_events_as_at_a_thousand(
    start_notary: StartNotary,
) -> None:
    # Timed work would add to the pages of a call.
    notary = start_notary(limits=replace(UNDISTURBED, quiet_seconds=3600.0, idle_seconds=3600.0))
    front = notary.front
    for _ in range(20):
        for number in front.send(*[make_open() for _ in range(50)]):
            front.answer(number)
    record_call(front)  # what the last unit answered is written again for a while
    small = frames_for_calls(notary)
    notary.stop()
    with notary.stranger() as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(_FILL)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # A start looks at the end of it.
        head = "json_set(value, '$.seq', ?, '$.hash', ?)"
        connection.execute(f"UPDATE meta SET value = {head} WHERE key = 'head'", (LARGE, sha256_hex(bytes(60))))
        connection.execute("UPDATE events SET leaf = (SELECT max(leaf) FROM events) WHERE seq = ?", (LARGE,))
    large = frames_for_calls(notary)
    assert 3 < large < 8, (small, large)
    assert large <= small * 1.2, (small, large)
