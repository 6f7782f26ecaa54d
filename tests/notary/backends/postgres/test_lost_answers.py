"""The same with the ledger in a PostgreSQL, whose COMMIT may be in doubt, too, and which goes on for other gateways."""

import threading
from typing import Any

import pytest

from ipc.operations.calls import Closed
from tests.notary.backends.losing import Losing
from tests.notary.backends.order import CALLS, GONE, Killed, budgeted, bury, left
from tests.notary.backends.postgres.conftest import postgres_of
from tests.notary.backends.postgres.test_kills import collected  # noqa: F401 - what ends here leaves things open, too
from tests.notary.backends.redis.test_lost_answers import (  # noqa: F401 - what holds for one ledger holds for the other
    comes_back,
    debit_in_doubt,
    goes_on,
    test_a_debit_that_comes_to_redis_after_the_doubt_is_over_takes_nothing,
    test_a_debit_whose_unit_the_ledger_did_not_take_is_given_back_where_it_went_on_meanwhile,
    test_a_hold_whose_answer_was_lost_is_not_there_and_its_proof_stays_used,
    test_it_is_given_back_after_a_second_answer_was_lost,
    test_it_is_given_back_once_and_what_is_taken_later_stays_taken,
    test_it_is_given_back_where_the_ledger_went_on_meanwhile,
    test_while_it_is_in_doubt_nothing_else_is_taken,
    told,
)
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_issue
from tests.support.gateway import WAIT_SECONDS, wait_for
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

pytestmark = [
    pytest.mark.large,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_it_is_given_back_where_another_gateway_went_on_meanwhile(
    distant: Running, start: StartNotary, way: Losing, redis_server: RedisServer
) -> None:
    other = start("other")
    session_id = debit_in_doubt(distant, way, redis_server)
    for _ in range(3):
        assert isinstance(other.front.ask(budgeted(session_id)), Closed)
    goes_on(distant)
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS - 3
    assert walk_of(other).intact


def test_a_debit_stays_taken_where_the_ledger_has_its_unit_and_could_not_say_so(
    distant: Running, way: Losing, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = distant.front.ask(make_issue(max_calls=CALLS)).session_id
    postgres, line = postgres_of(distant)
    execute = line.execute

    def breaking(statement: Any, *more: Any) -> Any:
        done = execute(statement, *more)
        if statement == "COMMIT":
            assert line._pipeline is not None
            line._pipeline.sync()
            way.shut()
            line.pgconn.finish()
        return done

    with monkeypatch.context() as patched:
        patched.setattr(postgres, "_was_committed", lambda _: False)
        patched.setattr(line, "execute", breaking)
        assert told(distant, budgeted(session_id)) == "ledger"
    wait_for(lambda: _goes_on(distant), "the ledger")
    comes_back(distant, way)
    assert left(distant, session_id) == CALLS - 1
    distant.restart()
    assert left(distant, session_id) == CALLS - 1


def _goes_on(distant: Running) -> bool:
    try:
        goes_on(distant)
    except Exception:
        return False
    return True


@pytest.mark.usefixtures("patient_backends")
def test_a_start_waits_for_what_the_notary_before_it_is_committing(
    start: StartNotary, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = start()
    session_id = before.front.ask(make_issue(max_calls=CALLS)).session_id
    is_committing, goes_on = threading.Event(), threading.Event()
    hold_commit(before, is_committing, goes_on, monkeypatch)
    (number,) = before.front.send(budgeted(session_id))
    assert is_committing.wait(WAIT_SECONDS)
    followers: list[Running] = []
    starting = threading.Thread(target=lambda: followers.append(start()))
    starting.start()
    wait_for(lambda: postgres_server.ask(WAITS_FOR_A_LOCK) == [(1,)], "the start")
    goes_on.set()
    starting.join(WAIT_SECONDS)
    with pytest.raises(GONE):
        before.front.heard(number)
    bury(before)
    followers[0].front = followers[0].attach("another")
    assert left(followers[0], session_id) == CALLS - 1, "the ledger has its unit"


WAITS_FOR_A_LOCK = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def hold_commit(
    running: Running, is_committing: threading.Event, goes_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make the next COMMIT slow, and end the notary before the server answers it."""
    _, line = postgres_of(running)
    execute = line.execute

    def holding(statement: Any, *more: Any) -> Any:
        if statement != "COMMIT" or is_committing.is_set():
            return execute(statement, *more)
        is_committing.set()
        assert goes_on.wait(WAIT_SECONDS)
        execute(statement)
        assert line._pipeline is not None
        line._pipeline.sync()
        raise Killed

    monkeypatch.setattr(line, "execute", holding)
