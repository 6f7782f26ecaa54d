"""Proofs, budgets and approvals: what is over is forgotten a little at a time, and no question scans a table."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from ipc.operations.holds import ListHolds
from notary.ledger.known_proofs import KnownProofs
from notary.store import budgets, holds, kept, proofs, quotas
from notary.store.contract import Moment
from notary.store.hold_list import HoldList
from notary.store.keeping import KeptBounds
from tests.notary.running import Running
from tests.notary.samples import NOW, changed, make_approval
from tests.notary.store.conftest import open_stores
from tests.support.redis_server import RedisServer

MOMENT = Moment(NOW, 0)


@pytest.fixture
def connection(notary: Running) -> Iterator[sqlite3.Connection]:
    """To the file of a notary that has ended: a living one would sweep it, too."""
    notary.stop()
    with notary.stranger() as connection:
        yield connection


def count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_sweep_takes_a_bounded_bite_and_touches_no_live_proof(connection: sqlite3.Connection) -> None:
    rows = [(int(NOW + second) * 1000, f"{number:05}", NOW + second) for second in range(3) for number in range(3000)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO proofs VALUES (?, ?, ?)", rows)
    left = []
    while proofs.sweep(connection, NOW + 2):
        left.append(count(connection, "proofs"))
    assert left == [9000 - bite * proofs.SWEPT_AT_ONCE for bite in (1, 2, 3)]
    assert count(connection, "proofs") == 3000


def test_a_proof_that_can_still_be_shown_outlives_every_sweep(connection: sqlite3.Connection) -> None:
    row = proofs.row_of("p", NOW)
    connection.execute(proofs.INSERT_PROOF, row)
    for later in range(0, int(proofs.REPLAY_SECONDS), 20):
        proofs.sweep(connection, NOW + later)
        assert proofs.read(connection) == [row]


def test_a_proof_is_swept_once_it_is_over(connection: sqlite3.Connection) -> None:
    connection.execute(proofs.INSERT_PROOF, proofs.row_of("p", NOW))
    proofs.sweep(connection, NOW + proofs.REPLAY_SECONDS + 1)
    assert proofs.read(connection) == []


def test_rows_of_an_earlier_version_are_swept_when_they_are_over_and_not_before(
    connection: sqlite3.Connection,
) -> None:  # fmt: skip
    connection.execute("INSERT INTO proofs VALUES (?, 'p', ?)", (int((NOW + 180) // 60), NOW + 180))
    proofs.bring(connection)
    proofs.sweep(connection, NOW + 179)
    assert proofs.read(connection) == [((int(NOW) + 180) * 1000, "p", NOW + 180)]
    proofs.sweep(connection, NOW + 181)
    assert proofs.read(connection) == []


def test_a_proof_is_known_until_it_is_over() -> None:
    known = KnownProofs([proofs.row_of("first", NOW)])
    known.add([proofs.row_of("second", NOW + 90)])
    assert known.is_used("first", NOW + 125), "a proof lives for a minute, and a clock may be ahead"
    assert known.is_used("first", NOW + 60), "by a clock that was set back a little"
    assert not known.is_used("first", NOW + proofs.REPLAY_SECONDS)
    assert len(known) == 2
    known.add([proofs.row_of("third", NOW + 200)])
    assert len(known) == 2, "the first was forgotten"
    assert known.is_used("second", NOW + 200)


def test_budgets_of_sessions_that_are_over_go_and_others_stay(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    for number in range(budgets.SWEPT_AT_ONCE + 100):
        budgets.open_budget(connection, f"old-{number}", 1, NOW)
    budgets.open_budget(connection, "young", 1, NOW + 1)
    assert [budgets.sweep(connection, NOW) for _ in range(2)] == [True, False]
    assert count(connection, "budgets") == 1
    assert budgets.read(connection, "young").found


def test_approvals_that_ended_go_a_day_later_and_those_that_wait_or_run_stay(connection: sqlite3.Connection) -> None:
    for state in ("pending", "claimed", "approved", "denied", "expired", "failed"):
        holds.store(connection, changed(make_approval(), state=state, approval_id=state))
    assert not holds.sweep(connection, NOW + 299)
    assert count(connection, "approvals") == 6
    holds.sweep(connection, NOW + 300)
    left = HoldList(connection, ListHolds(None, 9), MOMENT).records()
    assert [record.approval_id for record in left] == ["pending", "claimed"]


def test_quotas_keep_what_counts_and_little_more(connection: sqlite3.Connection) -> None:
    minute = quotas.minute_of(NOW)
    for number in range(quotas.SWEPT_AT_ONCE + 10):
        quotas.count_call(connection, f"p-{number}", minute - 63)
    quotas.note_hold(connection, "old", "p", minute - 63)
    quotas.add_session(connection, "p", "old", 0, NOW - 61)
    quotas.count_call(connection, "p", minute - 60)
    quotas.note_hold(connection, "young", "p", minute - 60)
    quotas.add_session(connection, "p", "young", 0, NOW - 59)
    assert [quotas.sweep(connection, NOW) for _ in range(2)] == [True, False]
    assert [count(connection, f"quota_{kind}") for kind in ("calls", "holds", "sessions")] == [1, 1, 1]
    assert quotas.calls_of(connection, "p", NOW)[0] == 1


def test_no_question_scans_a_table(connection: sqlite3.Connection) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    approval = make_approval()
    proofs.sweep(connection, NOW)
    budgets.open_budget(connection, "s", 1, NOW)
    budgets.debit(connection, "s")
    budgets.refund(connection, "s")
    budgets.sweep(connection, NOW)
    holds.store(connection, approval)
    holds.pending(connection, "s", "a", "r", MOMENT)
    holds.waiting_of_session(connection, "s", MOMENT)
    holds.waiting_of(connection, "p", MOMENT)
    holds.waiting(connection, MOMENT)
    for states in (None, ("pending", "claimed")):
        filters: dict[str, Any]
        for filters in ({}, {"principal": "p"}, {"before": NOW}, {"action_id": "a"}):
            wanted = HoldList(connection, ListHolds(states, 5, **filters), MOMENT)
            wanted.records()
            wanted.total()
    holds.due(connection, MOMENT, 5)
    holds.claimed_by_others(connection, ("f",))
    holds.move(connection, approval.approval_id, "pending", "claimed", outcome="{}")
    holds.count_pending(connection, MOMENT)
    holds.sweep(connection, NOW)
    kept.keep(connection, approval, NOW)
    kept.kept(connection, approval.approval_id)
    kept.trim(connection, KeptBounds(NOW - 1, 1 << 20, 1 << 20))
    quotas.calls_of(connection, "p", NOW)
    quotas.count_call(connection, "p", 1)
    quotas.give_back(connection, "p", 1)
    quotas.note_hold(connection, "a", "p", 1)
    quotas.is_counted_hold(connection, "a")
    quotas.give_back_hold(connection, "a")
    quotas.sessions_of(connection, "p", 0, NOW)
    quotas.add_session(connection, "p", "s", 0, NOW)
    quotas.sweep(connection, NOW)
    connection.set_trace_callback(None)
    assert len(statements) > 16
    for statement in statements:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert [line for line in plan if line.startswith("SCAN") and "INDEX" not in line] == [], statement


FILL = """
for number = 1, ARGV[1] do
  redis.call('ZADD', KEYS[1], number, number)
  redis.call('HSET', KEYS[2], number, '{}')
end
"""


@pytest.mark.large
def test_redis_lists_a_bounded_number_of_ended_approvals_and_forgets_the_oldest(redis_server: RedisServer) -> None:
    stores = open_stores(redis_server, "ended")
    ended_at, ended = stores.keys.ended_at, stores.keys.ended
    redis_server.ask("EVAL", FILL, 2, ended_at, ended, 10_003)
    assert not stores.sweep(0.0)
    assert redis_server.ask("ZRANGE", ended_at, 0, 0) == ["4"]
    assert redis_server.ask("ZCARD", ended_at) == redis_server.ask("HLEN", ended) == 10_000
    stores.client.close()
