"""Proofs, budgets and approvals: what is over is forgotten a little at a time, and no question scans a table."""

import sqlite3
from collections.abc import Iterator

import pytest

from notary.store import budgets, holds, proofs
from tests.notary.running import Running
from tests.notary.samples import NOW, changed, make_approval


@pytest.fixture
def connection(notary: Running) -> Iterator[sqlite3.Connection]:
    with notary.stranger() as connection:
        yield connection


def count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_sweep_takes_a_bounded_bite_and_touches_no_live_proof(connection: sqlite3.Connection) -> None:
    rows = [(int(NOW // 60) + minute, f"{number:05}", NOW) for minute in range(3) for number in range(3000)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO proofs VALUES (?, ?, ?)", rows)
    left = []
    while proofs.sweep(connection, NOW + 120):
        left.append(count(connection, "proofs"))
    assert left == [9000 - bite * proofs.SWEPT_AT_ONCE for bite in (1, 2, 3)]
    assert count(connection, "proofs") == 3000


def test_a_proof_that_can_still_be_shown_outlives_every_sweep(connection: sqlite3.Connection) -> None:
    connection.execute(proofs.INSERT_PROOF, proofs.row_of("p", NOW))
    for later in range(0, int(proofs.REPLAY_SECONDS), 20):
        proofs.sweep(connection, NOW + later)
        assert proofs.is_used(connection, "p", NOW + later)


def test_budgets_of_sessions_that_are_over_go_and_others_stay(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    for number in range(budgets.SWEPT_AT_ONCE + 100):
        budgets.open_budget(connection, f"old-{number}", 1, NOW)
    budgets.open_budget(connection, "young", 1, NOW + 1)
    assert [budgets.sweep(connection, NOW) for _ in range(2)] == [True, False]
    assert count(connection, "budgets") == 1
    assert budgets.read(connection, "young").found


def test_a_refund_to_a_session_that_is_gone_is_no_error(connection: sqlite3.Connection) -> None:
    assert not budgets.refund(connection, "gone").found


def test_approvals_that_ended_go_a_day_later_and_those_that_wait_or_run_stay(connection: sqlite3.Connection) -> None:
    for state in ("pending", "claimed", "approved", "denied", "expired", "failed"):
        holds.store(connection, changed(make_approval(), state=state, approval_id=state))
    assert not holds.sweep(connection, NOW + 299)
    assert count(connection, "approvals") == 6
    holds.sweep(connection, NOW + 300)
    assert [record.approval_id for record in holds.newest(connection, None, 9)] == ["pending", "claimed"]


def test_no_question_scans_a_table(connection: sqlite3.Connection) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    approval = make_approval()
    proofs.is_used(connection, "p", NOW)
    proofs.sweep(connection, NOW)
    budgets.open_budget(connection, "s", 1, NOW)
    budgets.debit(connection, "s")
    budgets.refund(connection, "s")
    budgets.sweep(connection, NOW)
    holds.store(connection, approval)
    holds.pending(connection, "s", "a", "r", NOW)
    holds.waiting(connection, "s", NOW)
    holds.newest(connection, None, 5)
    holds.newest(connection, ("pending", "claimed"), 5)
    holds.due(connection, NOW, 5)
    holds.claimed_by_others(connection, ("f",))
    holds.move(connection, approval.approval_id, "pending", "claimed", outcome="{}")
    holds.count_pending(connection, NOW)
    holds.sweep(connection, NOW)
    connection.set_trace_callback(None)
    assert len(statements) > 16
    for statement in statements:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert [line for line in plan if line.startswith("SCAN") and "INDEX" not in line] == [], statement
