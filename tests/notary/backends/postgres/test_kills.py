"""A notary that ends between two steps of a unit in Redis and PostgreSQL.

The difference between both is undone before the next request is served: docs/decisions/backends.md, "The order of Redis
and ledger".
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.operations.evidence import ReadCheckpoint
from notary.backends.postgres.database import TAKE_TURN
from tests.notary.backends.order import GONE, Killed, budgeted, end_of, ended, left
from tests.notary.backends.postgres.conftest import postgres_of
from tests.notary.conftest import StartNotary
from tests.notary.running import NotaryProcess, Running, walk_of
from tests.notary.samples import make_issue, make_note
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


def kill_before_commit(notary: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the notary end just before COMMIT of its next unit that writes."""
    _, line = postgres_of(notary)
    execute, asked = line.execute, list[str]()

    def ending(statement: Any, *more: Any) -> Any:
        asked[:] = [statement] if statement.startswith("BEGIN") else [*asked, statement]
        if statement != "COMMIT" or TAKE_TURN not in asked:
            return execute(statement, *more)
        raise Killed

    monkeypatch.setattr(line, "execute", ending)


MANY, LIVES = 90, 8


def test_the_other_gateway_goes_on_at_once_when_one_is_killed_within_a_unit(
    start: StartNotary, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = start("one"), start("other")
    kill_before_commit(one, monkeypatch)
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
