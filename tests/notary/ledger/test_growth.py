"""A large ledger costs no more to write than a small one, and a long outbox no more to ask."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.operations.deliveries import ClaimDeliveries
from ipc.texts.canonical import sha256_hex
from notary.ledger import outbox
from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running, query
from tests.notary.samples import NOW_MS, UNTIL, make_open, record_call

LARGE = 100_000
CALLS = 100
FRAME = 24 + 4096

_EVENTS = f"""
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
def test_a_call_writes_as_many_pages_at_100_000_events_as_at_a_thousand(start_notary: StartNotary) -> None:
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
        connection.execute(_EVENTS)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # A start looks at the end of it.
        head = "json_set(value, '$.seq', ?, '$.hash', ?)"
        connection.execute(f"UPDATE meta SET value = {head} WHERE key = 'head'", (LARGE, sha256_hex(bytes(60))))
        connection.execute("UPDATE events SET leaf = (SELECT max(leaf) FROM events) WHERE seq = ?", (LARGE,))
    large = frames_for_calls(notary)
    assert 3 < large < 8, (small, large)
    assert large <= small * 1.2, (small, large)


_FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO outbox (event_id, kind, endpoint, due, payload) SELECT 'evt_' || i, 'k', 'chat', ? + i, '{}' FROM n
"""


@pytest.fixture
def connection(notary: Running) -> Iterator[sqlite3.Connection]:
    """A ledger that no notary writes: one would give up the webhooks of an endpoint that it does not know."""
    notary.stop()
    with notary.stranger() as connection:
        yield connection


def test_no_question_walks_the_whole_outbox(connection: sqlite3.Connection) -> None:
    def plan(statement: str, values: tuple[Any, ...] = ()) -> str:
        return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))

    due = plan(outbox.DUE, ("chat", NOW_MS, "chat", NOW_MS, 1000))
    for term in ("due<?", "due>?"):
        assert f"SEARCH outbox USING INDEX outbox_by_due (endpoint=? AND {term})" in due
    some = plan(outbox.SOME, ("chat", NOW_MS, 100))
    assert "SEARCH outbox USING INDEX outbox_by_due (endpoint=? AND due<?)" in some
    assert "TEMP B-TREE" not in due + some
    for statement in (outbox.FORGET, outbox.PUT_OFF, outbox.GIVE_UP):
        answer = plan(statement, ("[]",))
        assert "SEARCH outbox USING INTEGER PRIMARY KEY (rowid=?)" in answer
        assert "SCAN outbox" not in answer
    assert "SCAN outbox" not in plan(outbox.TAKE, (1, "[]"))
    assert "SEARCH given_up USING INTEGER PRIMARY KEY (rowid<?)" in plan(outbox.FORGET_OLD)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    outbox.waiting(connection)
    outbox.next_due(connection, "chat")
    connection.set_trace_callback(None)
    assert len(statements) == 2
    for statement in statements:
        assert "USING COVERING INDEX outbox_by_due" in plan(statement)


def test_a_claim_costs_the_same_however_many_wait_for_later(connection: sqlite3.Connection) -> None:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def cost() -> int:
        nonlocal steps
        steps = 0
        connection.set_progress_handler(count, 10)
        taken = outbox.claim(connection, ClaimDeliveries("chat", NOW_MS, UNTIL, 10))
        connection.set_progress_handler(None, 0)
        assert len(taken) == 10
        return steps

    connection.execute(_FILL, (10, NOW_MS - 10))
    alone = cost()
    connection.execute(_FILL, (10, NOW_MS - 10))
    connection.execute(_FILL, (20_000, NOW_MS))
    assert cost() <= alone + 10
