"""The matrix of faults, cell by cell, on real gateways and real servers: the answers, the log and metrics, and the
state afterwards.

One gateway has one or two dependencies; all of them are walked at once, since most of it is waiting.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from tests.faults.report import DOCUMENT, document
from tests.faults.stages.collector import collector_stage
from tests.faults.stages.core import can_mount, opa_stage, redis_stage, sqlite_stage
from tests.faults.stages.edges import proxy_stage, webhook_stage
from tests.faults.stages.postgres import postgres_stage
from tests.faults.stages.refused import ended, starting
from tests.faults.stages.token_server import token_server_stage
from tests.faults.table import TABLES
from tests.faults.table.collector import COLLECTOR
from tests.faults.table.edges import FILE, PROXY, SOPS, WEBHOOKS
from tests.faults.table.opa import OPA
from tests.faults.table.postgres import POSTGRES
from tests.faults.table.redis import REDIS
from tests.faults.table.rows import FAULTS, HEALTHY, OPERATIONS, Refused, Row, Table
from tests.faults.table.sqlite import SQLITE
from tests.faults.table.token_server import TOKEN_SERVER
from tests.faults.walk import Seen, Stage, holds, walk
from tests.support import documented

Start = Callable[[Path], AbstractContextManager[list[Stage]]]
STAGES: dict[Start, tuple[Table, ...]] = {
    redis_stage: (REDIS,),
    opa_stage: (OPA,),
    sqlite_stage: (SQLITE,),
    postgres_stage: (POSTGRES,),
    proxy_stage: (PROXY, FILE),
    webhook_stage: (WEBHOOKS, SOPS),
    token_server_stage: (TOKEN_SERVER,),
    collector_stage: (COLLECTOR,),
}


def rows_of(kind: type[Row | Refused]) -> pytest.MarkDecorator:
    """A test for each row of this kind."""
    rows = [(table, fault) for table in TABLES for fault, row in table.rows.items() if isinstance(row, kind)]
    names = [f"{table.dependency}: {fault}" for table, fault in rows]
    return pytest.mark.parametrize(("table", "fault"), rows, ids=names)


every_row = rows_of(Row)
Walked = dict[str, dict[str, Seen]]
Walks = dict[str, Future[Walked]]
Asked = set[tuple[str, str]]


def _walked(start: Start, folder: Path, asked: Asked, started: Barrier) -> Walked:
    """Once the gateways of all stages have started: while they start, a healthy server may miss a deadline."""
    folder.mkdir()
    with ExitStack() as stack:
        try:
            stages = stack.enter_context(start(folder))
        except BaseException:
            started.abort()  # so that the others go on
            raise
        with suppress(BrokenBarrierError):
            started.wait()
        return {
            stage.table.dependency: walk(stage, {fault for name, fault in asked if name == stage.table.dependency})
            for stage in stages
        }


def _asked(request: pytest.FixtureRequest) -> Asked:
    """Dependencies and faults that tests of this run ask for."""
    items = [item for item in request.session.items if item.path == request.path and "seen" in item.fixturenames]  # type: ignore[attr-defined]
    chosen = [item.callspec.params for item in items]  # type: ignore[attr-defined]
    return {(one["table"].dependency, one["fault"]) for one in chosen}


@pytest.fixture(scope="module")
def walks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walks]:
    """Dependency -> its walk."""
    asked, folder = _asked(request), tmp_path_factory.mktemp("faults")
    documented.prepare()  # Python 3.11 can't read source in several threads at once
    with ThreadPoolExecutor(len(STAGES)) as pool:
        by_dependency: Walks = {}
        names = {start: {table.dependency for table in tables} for start, tables in STAGES.items()}
        wanted = [start for start in STAGES if names[start] & {name for name, _ in asked}]
        started = Barrier(max(1, len(wanted)))
        for start in wanted:
            future = pool.submit(_walked, start, folder / getattr(start, "__name__", "stage"), asked, started)
            by_dependency |= dict.fromkeys(names[start], future)
        yield by_dependency


@pytest.fixture
def seen(walks: dict[str, Future[Walked]], table: Table, fault: str) -> Seen:
    """The observations of this fault."""
    if table in (SQLITE, POSTGRES) and fault == "full" and not can_mount():
        pytest.skip("only root may mount a small disk")
    return walks[table.dependency].result()[table.dependency][fault]


def row_of(table: Table, fault: str) -> Row:
    row = table.rows[fault]
    assert isinstance(row, Row)
    return row


@pytest.mark.parametrize("operation", OPERATIONS)
@every_row
def test_it_is_answered_as_the_table_says(table: Table, fault: str, operation: str, seen: Seen) -> None:
    assert seen.answers[operation] in row_of(table, fault).answer(operation).split(" or ")


@every_row
def test_metrics_and_log_tell_of_it(table: Table, fault: str, seen: Seen) -> None:
    row = row_of(table, fault)
    assert [one for one in row.metrics if not holds(one, seen.before, seen.metrics)] == []
    assert row.log in seen.log


@every_row
def test_each_answer_of_5xx_has_its_line_with_code_and_trace_id(table: Table, fault: str, seen: Seen) -> None:
    lines = [json.loads(line) for line in seen.log.splitlines() if line.startswith("{")]
    for operation, answer in seen.answers.items():
        if answer[0] == "5" and operation != "readiness":
            told = [one for one in lines if one.get("trace_id") == seen.traces[operation]]
            assert answer[4:] in [one.get("code") for one in told], operation


@every_row
def test_it_is_over_without_a_restart_nothing_is_lost_and_nothing_was_allowed(
    table: Table, fault: str, seen: Seen
) -> None:
    assert seen.problems == []
    assert "Traceback" not in seen.log


@every_row
def test_further_calls_ask_a_dependency_that_is_down_nothing(table: Table, fault: str, seen: Seen) -> None:
    assert not seen.further


# ------------------------------------------------------------------------------------------------ starts


@rows_of(Refused)
def test_a_start_that_can_not_be_is_one_sentence_and_its_exit_code(table: Table, fault: str, tmp_path: Path) -> None:
    row = table.rows[fault]
    assert isinstance(row, Refused)
    with starting(table, fault, tmp_path) as process:
        code, log = ended(process)
    assert code == row.exit_code, log
    assert sum(row.log in line for line in log.splitlines()) == 1, log
    assert "Traceback" not in log


# ------------------------------------------------------------------------------------------------ the table itself


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.dependency)
def test_every_fault_has_a_row_or_says_why_it_has_none(table: Table) -> None:
    assert tuple(table.rows) == FAULTS
    for row in table.rows.values():
        if isinstance(row, Row):
            assert set(row.answers) <= set(OPERATIONS)
            assert all(answer != HEALTHY[operation] for operation, answer in row.answers.items())
        else:
            assert row


def test_every_dependency_has_a_stage() -> None:
    staged = [table.dependency for tables in STAGES.values() for table in tables]
    assert sorted(staged) == sorted(table.dependency for table in TABLES)


def test_the_document_is_what_the_table_says() -> None:
    assert DOCUMENT.read_text() == document(), "run `make failure-modes`"
