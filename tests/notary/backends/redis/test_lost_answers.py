"""Redis has applied a unit and its answer is lost: the ledger does not have the unit and may commit others. This
notary or the next one returns the unit's debits before it uses the store again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ipc.operations.calls import Closed, ProofRecord, UseProof
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadBudget, SignedLease
from ipc.operations.operation import Operation
from notary.backends.redis.changes import Changes
from notary.backends.redis.scripts import RECOVER
from notary.database import DatabaseGone, OpenTransaction
from notary.store.contract import StoreGone
from tests.notary.backends.losing import LATE, RESET, SILENT, Losing
from tests.notary.backends.order import CALLS, budgeted, left, stores_of
from tests.notary.running import Running, walk_of
from tests.notary.samples import (
    NOW,
    call_event,
    changed,
    fresh_proof,
    make_claim,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_revoke,
)
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.redis_server import RedisServer

DEBIT, STEPS, PROOFS = b'["debit",', b'"steps":[["', b'"proofs":["'
NOTES = 3


def told(distant: Running, asked: Operation[Any]) -> str:
    with pytest.raises(Told) as error:
        distant.front.ask(asked)
    assert error.value.problem == "unavailable"
    return error.value.part or ""


def comes_back(distant: Running, way: Losing) -> None:
    way.open()
    wait_for(lambda: _is_there(distant), "the store")


def _is_there(distant: Running) -> bool:
    try:
        return bool(distant.front.ask(UseProof(fresh_proof())).is_fresh)
    except Told:
        return False


def goes_on(distant: Running) -> None:
    """The ledger has units that ask nothing of the store."""
    for _ in range(NOTES):
        distant.front.ask(make_note())
    assert isinstance(distant.front.ask(make_issue()), SignedLease)


def debit_in_doubt(distant: Running, way: Losing, redis_server: RedisServer, how: str = RESET) -> str:
    """A session of CALLS calls; Redis has taken one of them for a unit that the ledger does not have."""
    session_id = distant.front.ask(make_issue(max_calls=CALLS)).session_id
    way.lose(DEBIT, how)
    assert told(distant, budgeted(session_id)) in ("budget", "store")
    (key,) = [name for name in redis_server.ask("KEYS", "*:budget:*") if name.endswith(session_id)]
    assert redis_server.ask("HGET", key, "left") == str(CALLS - (how != LATE)), "it was done"
    return str(session_id)


@pytest.mark.parametrize("how", [RESET, SILENT])
def test_it_is_given_back_where_the_ledger_went_on_meanwhile(
    distant: Running, way: Losing, redis_server: RedisServer, how: str
) -> None:
    session_id = debit_in_doubt(distant, way, redis_server, how)
    goes_on(distant)
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS
    assert isinstance(distant.front.ask(budgeted(session_id)), Closed)
    assert left(distant, session_id) == CALLS - 1
    assert walk_of(distant).intact


def test_it_is_given_back_once_and_what_is_taken_later_stays_taken(
    distant: Running, way: Losing, redis_server: RedisServer
) -> None:
    session_id = debit_in_doubt(distant, way, redis_server)
    goes_on(distant)
    comes_back(distant, way)
    for used in (1, 2):
        assert isinstance(distant.front.ask(budgeted(session_id)), Closed)
        distant.restart()
        assert left(distant, session_id) == CALLS - used


def test_it_is_given_back_after_a_second_answer_was_lost(
    distant: Running, way: Losing, redis_server: RedisServer
) -> None:
    session_id = debit_in_doubt(distant, way, redis_server)
    goes_on(distant)
    comes_back(distant, way)
    way.lose(DEBIT)
    told(distant, budgeted(session_id))
    goes_on(distant)
    distant.stop()
    way.open()
    distant.start()
    assert left(distant, session_id) == CALLS


def test_a_hold_whose_answer_was_lost_is_not_there_and_its_proof_stays_used(
    distant: Running, way: Losing, redis_server: RedisServer
) -> None:
    assert _is_there(distant)  # and Redis has the script
    asked = changed(make_hold(calls_per_hour=CALLS), proof=ProofRecord("of-a-hold", NOW))
    way.lose(STEPS)
    told(distant, asked)
    assert redis_server.ask("KEYS", f"*:hold:{asked.approval.approval_id}")
    goes_on(distant)
    comes_back(distant, way)
    assert distant.front.ask(GetHold(asked.approval.approval_id)) is None
    assert redis_server.ask("KEYS", f"*{asked.approval.approval_id}*") == []
    assert not distant.front.ask(UseProof(ProofRecord("of-a-hold", NOW))).is_fresh


def test_a_debit_that_comes_to_redis_after_the_doubt_is_over_takes_nothing(
    distant: Running, way: Losing, redis_server: RedisServer
) -> None:
    session_id = debit_in_doubt(distant, way, redis_server, LATE)
    goes_on(distant)
    comes_back(distant, way)
    assert b"fence" in way.deliver()
    assert left(distant, session_id) == CALLS


def test_a_debit_whose_unit_the_ledger_did_not_take_is_given_back_where_it_went_on_meanwhile(
    distant: Running, way: Losing, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = distant.front.ask(make_issue(max_calls=CALLS)).session_id
    with monkeypatch.context() as patched:
        fail_to_commit(distant, patched, way.shut)
        assert told(distant, budgeted(session_id)) == "ledger"
    goes_on(distant)
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS


def test_it_is_given_back_where_redis_did_not_answer_its_recovery_and_the_ledger_went_on_meanwhile(
    distant: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = distant.front.ask(make_issue(max_calls=CALLS)).session_id

    def failing(last: int, doubt: int | None) -> None:
        raise StoreGone("no answer in time")

    with monkeypatch.context() as patched:
        patched.setattr(stores_of(distant), "recover", failing)
        fail_to_commit(distant, patched, lambda: None)
        assert told(distant, budgeted(session_id)) == "ledger"
        goes_on(distant)
    assert left(distant, session_id) == CALLS


def fail_to_commit(distant: Running, patched: pytest.MonkeyPatch, follow: Callable[[], None]) -> None:
    """The next unit that takes from a budget: Redis has it, the ledger does not, and then this happens."""
    stores = stores_of(distant)
    apply = stores.apply

    def applying(changes: Changes, number: int) -> None:
        apply(changes, number)
        if changes.steps:
            follow()
            raise DatabaseGone("no room")

    patched.setattr(stores, "apply", applying)


def test_a_debit_whose_unit_the_ledger_took_unheard_stays_taken_where_it_went_on_meanwhile(
    distant: Running, way: Losing, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = distant.front.ask(make_issue(max_calls=CALLS)).session_id
    with monkeypatch.context() as patched:
        commit_unheard(distant, patched, way.shut)
        assert told(distant, budgeted(session_id)) == "ledger"
    goes_on(distant)
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS - 1
    assert walk_of(distant).intact


def commit_unheard(distant: Running, patched: pytest.MonkeyPatch, follow: Callable[[], None]) -> None:
    """The next unit that changes Redis: the ledger has it and does not say so, and then this happens."""
    database, stores = distant.thread.state.database, stores_of(distant)
    unit = database.unit

    @contextmanager
    def unheard(**given: bool) -> Iterator[OpenTransaction]:
        with unit(**given) as connection:
            yield connection
            is_applied = stores.owes
        if is_applied:
            patched.undo()
            follow()
            raise DatabaseGone("no answer")

    patched.setattr(database, "unit", unheard)


def test_a_recovery_whose_own_answer_was_lost_is_done_again_and_ends_no_lease(
    distant: Running, way: Losing, redis_server: RedisServer
) -> None:
    session_id = debit_in_doubt(distant, way, redis_server)
    way.lose(RECOVER.digest.encode())
    way.open()
    wait_for(lambda: len(way.lost) == 2, "the recovery")
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS
    assert distant.front.ask(UseProof(fresh_proof())).epoch == 0


def test_while_it_is_in_doubt_nothing_else_is_taken(distant: Running, way: Losing, redis_server: RedisServer) -> None:
    session_id = debit_in_doubt(distant, way, redis_server)
    goes_on(distant)
    assert told(distant, budgeted(session_id)) != ""
    assert told(distant, ReadBudget(session_id)) == "budget"
    goes_on(distant)
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS


def test_a_unit_whose_answer_was_lost_is_refused_by_the_part_of_the_store_that_it_asked(
    distant: Running, way: Losing
) -> None:
    session_id = distant.front.ask(make_issue(max_calls=CALLS)).session_id
    held = make_hold()
    distant.front.ask(held)
    called = call_event(session_id=session_id)
    for asked, words, part in (
        (UseProof(fresh_proof()), PROOFS, "store"),
        (make_claim(held.approval), STEPS, "approvals"),
        (make_open(event=called, has_budget=True, proof=None), STEPS, "budget"),
        (make_open(event=called, calls_per_hour=CALLS, proof=None), STEPS, "budget"),
        (make_issue(max_sessions=CALLS), STEPS, "budget"),
        (make_revoke(), STEPS, "store"),
    ):
        way.lose(words)
        assert told(distant, asked) == part, asked
        comes_back(distant, way)
