"""What the outbox costs: statements, commits and pages that evidence pays for, and questions that find their rows."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from frontend.evidence import deliveries, reading
from frontend.evidence.sqlite import SqliteLedger
from frontend.evidence.writing import prepared_record, write_together
from tests.frontend.evidence.conftest import commits_in_wal
from tests.frontend.evidence.samples import (
    NOW_MS,
    claim,
    make_event,
    make_rows,
    notify,
)

_FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO outbox (event_id, kind, endpoint, due, payload) SELECT 'evt_' || i, 'k', 'chat', ?2 + i, '{}' FROM n
"""


async def test_an_event_without_deliveries_is_written_as_if_there_were_no_outbox(
    connection: sqlite3.Connection,
) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    events = [make_event() for _ in range(20)]
    write_together(connection, [prepared_record(None, event, (), None) for event in events])
    plain = len(statements)
    assert not any("outbox" in statement for statement in statements)
    more = [make_event() for _ in range(20)]
    write_together(connection, [prepared_record(None, event, make_rows(event, "chat"), None) for event in more])
    assert len(statements) == 2 * plain + 1


async def test_many_settlements_are_as_many_statements_as_one(
    ledger: SqliteLedger, connection: sqlite3.Connection
) -> None:
    for _ in range(40):
        await notify(ledger, "chat")
    claimed = await claim(ledger)
    names = [(delivery.seq, delivery.attempt, delivery.event_id) for delivery in claimed]
    tasks: list[deliveries.Task] = []
    for kind in range(3):
        for name in names[kind * 10 : kind * 10 + 10]:
            makers = (deliveries.Delivered(name), deliveries.PutOff(name, 7), deliveries.GiveUp(name, 8, "no"))
            tasks.append(makers[kind])
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    assert deliveries.perform(connection, tasks) == [None] * 30
    assert len(statements) == 5
    connection.set_trace_callback(None)
    assert await ledger.outbox.waiting() == {"chat": 20}
    (late,) = connection.execute("SELECT count(*) FROM outbox WHERE due = 7").fetchone()
    assert late == 10


async def test_claims_and_settlements_share_the_commits_of_evidence(ledger: SqliteLedger, ledger_path: Path) -> None:
    for _ in range(10):
        await notify(ledger, "chat", "pager")
    claimed = await claim(ledger)
    before = commits_in_wal(ledger_path)
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            for delivery in claimed:
                nursery.start_soon(ledger.append, make_event())
                nursery.start_soon(ledger.outbox.delivered, delivery)
            nursery.start_soon(claim, ledger, "pager")
            await wait_all_tasks_blocked()
            stranger.execute("ROLLBACK")
    assert await ledger.outbox.waiting() == {"pager": 10}
    # One for those that were there when the thread began, one for those that came while it waited for the lock.
    assert commits_in_wal(ledger_path) - before <= 2


async def test_no_call_is_kept_waiting_for_the_company_of_deliveries(ledger: SqliteLedger) -> None:
    for _ in range(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger.append, make_event())
            for endpoint in ("chat", "pager", "log", "mail"):
                nursery.start_soon(claim, ledger, endpoint)
    assert ledger._writer._usual_size == 1.0


async def test_a_claim_that_finds_nothing_writes_nothing(ledger: SqliteLedger, ledger_path: Path) -> None:
    await notify(ledger, "chat")
    before = commits_in_wal(ledger_path)
    assert await claim(ledger, now=NOW_MS - 1) == []
    assert commits_in_wal(ledger_path) == before


async def test_no_question_walks_the_whole_outbox(ledger: SqliteLedger, connection: sqlite3.Connection) -> None:
    def plan(statement: str, values: tuple[Any, ...]) -> str:
        return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))

    due = plan(deliveries.DUE, ("chat", NOW_MS, NOW_MS, 1000))
    for term in ("due<?", "due>?"):
        assert f"SEARCH outbox USING INDEX outbox_by_due (endpoint=? AND {term})" in due
    some = plan(deliveries.SOME, ("chat", 100))
    assert "SEARCH outbox USING INDEX outbox_by_due (endpoint=?)" in some
    for answer in (due, some):
        assert "TEMP B-TREE" not in answer
    for statement in (deliveries.FORGET, deliveries.PUT_OFF, deliveries.GIVE_UP):
        answer = plan(statement, ("[]",))
        assert "SEARCH outbox USING INTEGER PRIMARY KEY (rowid=?)" in answer
        assert "SCAN outbox" not in answer
    assert "SCAN outbox" not in plan(deliveries.TAKE, (1, "[]"))
    assert "SEARCH given_up USING INTEGER PRIMARY KEY (rowid<?)" in plan(deliveries.FORGET_OLD, ())
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    reading.waiting_deliveries(connection)
    reading.next_due(connection, "chat")
    connection.set_trace_callback(None)
    for statement in statements:
        assert "USING COVERING INDEX outbox_by_due" in plan(statement, ())


async def test_a_claim_costs_the_same_however_many_wait_for_later(connection: sqlite3.Connection) -> None:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def cost() -> int:
        nonlocal steps
        steps = 0
        connection.set_progress_handler(count, 10)
        (found,) = deliveries.perform(connection, [deliveries.Claim("chat", NOW_MS, NOW_MS, 10)])
        connection.set_progress_handler(None, 0)
        assert isinstance(found, list)
        assert len(found) == 10
        return steps

    connection.execute(_FILL, (10, NOW_MS - 10))
    alone = cost()
    connection.execute(_FILL, (20_000, NOW_MS))
    assert cost() <= alone + 10
