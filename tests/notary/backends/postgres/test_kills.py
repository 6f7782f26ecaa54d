"""A notary that ends between two steps of a unit in Redis and PostgreSQL: docs/decisions.md, "The order of Redis
and ledger". Before it serves, the next notary undoes every change that only one of the two stores has."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.evidence import EventQuery
from ipc.messages import Closed, GetHold, Issued, ListUnresolved, QueryEvents, ReadCheckpoint
from notary.backends.postgres.database import TAKE_TURN, PostgresDatabase
from tests.notary.backends.postgres.conftest import StartNotary
from tests.notary.backends.redis.test_kills import CALLS, GONE, Killed, budgeted, end_of, ended, kill_at, left
from tests.notary.running import NotaryProcess, Running, walk_of
from tests.notary.samples import make_hold, make_issue, make_note
from tests.support.strace import injected

pytestmark = [
    pytest.mark.large,
    pytest.mark.usefixtures("patient_backends"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect the files that an ended notary left open here, not in a later test."""
    yield
    gc.collect()


def kill_at_commit(notary: Running, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the notary end just before COMMIT of its next unit that writes, or once it is done."""
    assert notary.thread is not None
    database = notary.thread.state.database
    assert isinstance(database, PostgresDatabase)
    line = database._line
    assert line is not None
    execute, asked = line.execute, list[str]()

    def ending(statement: Any, *more: Any) -> Any:
        asked[:] = [statement] if statement.startswith("BEGIN") else [*asked, statement]
        if statement != "COMMIT" or TAKE_TURN not in asked:
            return execute(statement, *more)
        if step == "committing":
            raise Killed
        execute(statement)
        assert line._pipeline is not None
        line._pipeline.sync()
        raise Killed

    monkeypatch.setattr(line, "execute", ending)


def kill(notary: Running, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (kill_at_commit if step.startswith("commit") else kill_at)(notary, step, monkeypatch)


MANY, LIVES = 90, 8
NOT_DONE = pytest.mark.parametrize("step", ["before", "sent", "applied", "committing"])


@NOT_DONE
def test_what_the_ledger_does_not_have_is_undone_at_the_next_start(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = notary.front.ask(make_issue(max_calls=CALLS)).session_id
    kill(notary, step, monkeypatch)
    end_of(notary, budgeted(session_id))
    ended(notary)
    assert left(notary, session_id) == CALLS
    assert notary.front.ask(ListUnresolved(9)) == []
    assert isinstance(notary.front.ask(budgeted(session_id)), Closed)
    assert left(notary, session_id) == CALLS - 1
    assert walk_of(notary).intact


@NOT_DONE
def test_a_hold_that_the_ledger_does_not_have_is_not_there(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = make_hold(calls_per_hour=3)
    kill(notary, step, monkeypatch)
    end_of(notary, asked)
    ended(notary)
    assert notary.front.ask(GetHold(asked.approval.approval_id)) is None


@pytest.mark.parametrize("step", ["committed"])
def test_what_the_ledger_has_stays_and_is_answered_again_when_it_is_asked_again(
    notary: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = notary.attach("asks-again")
    asked = make_issue(max_calls=CALLS)
    kill(notary, step, monkeypatch)
    (number,) = front.send(asked)
    with pytest.raises(GONE):
        front.heard(number)
    ended(notary)
    again = notary.attach("asks-again")
    again.resend({number: asked})
    issued = again.answer(number)
    assert isinstance(issued, Issued)
    assert left(notary, issued.session_id) == CALLS
    assert len(notary.front.ask(QueryEvents(EventQuery()))) == 1


def test_the_other_gateway_goes_on_at_once_when_one_is_killed_within_a_unit(
    start: StartNotary, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = start("one"), start("other")
    kill(one, "committing", monkeypatch)
    end_of(one, make_note())
    assert other.front.ask(make_note()) is None
    ended(one)
    assert one.front.ask(make_note()) is None
    assert (walk_of(one).intact, walk_of(one).total_events) == (True, 2)


def test_a_process_killed_at_any_packet_leaves_store_and_ledger_that_agree(start: StartNotary, tmp_path: Path) -> None:
    running = start()
    session_id = running.front.ask(make_issue(max_calls=MANY)).session_id
    killed = 0
    for when in range(1, LIVES + 1):
        running.stop()
        process = NotaryProcess(running.settings, running.workers)
        process.ready()
        front = process.attach(f"front-{when}")
        running.workers.start(f"front-{when}", obeys=True)  # one that is killed now would tie none
        with injected(process.process.pid, "sendto,sendmsg", f"signal=KILL:when={2 * when}", tmp_path, ()):
            try:
                for _ in range(2):
                    front.ask(budgeted(session_id))
                process.stop()
            except GONE:
                killed += 1
                process.end()
        front.close()
        running.start()
        report, size = walk_of(running), running.front.ask(ReadCheckpoint()).size
        assert report.intact, report.reason
        assert MANY - left(running, session_id) == size - report.total_events, "one debit for each intent"
    assert killed > LIVES / 2
