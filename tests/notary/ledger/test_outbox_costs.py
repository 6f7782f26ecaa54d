"""Questions to the outbox find their rows, however many there are."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from ipc.operations.deliveries import ClaimDeliveries
from notary.ledger import outbox
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, UNTIL

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
    some = plan(outbox.SOME, ("chat", 100))
    assert "SEARCH outbox USING INDEX outbox_by_due (endpoint=?)" in some
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
