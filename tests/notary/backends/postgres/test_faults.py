"""A PostgreSQL that is gone, read-only, restarted or replaced: the notary answers only what is committed, a
call waits for the server once, and the notary resumes by itself when the server is back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from ipc.evidence.records import EventQuery
from ipc.operations.calls import Closed
from ipc.operations.evidence import QueryEvents, ReadCheckpoint
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadBudget
from ipc.operations.status import ReadLedger
from notary.backends.postgres.database import TAKE_TURN, PostgresDatabase
from notary.database import DatabaseGone
from notary.opening import open_state
from tests.notary.backends.order import budgeted
from tests.notary.backends.postgres.conftest import postgres_of
from tests.notary.backends.redis.test_faults import told
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, query, walk_of
from tests.notary.samples import hooks, make_issue, make_note, make_open, make_refuse, make_result
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]
Fault = Callable[[PostgresServer, str], AbstractContextManager[None]]


def comes_back(running: Running) -> None:
    wait_for(lambda: told(running, make_note()) == "", "the ledger")


@contextmanager
def down(server: PostgresServer, _: str) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@contextmanager
def read_only(server: PostgresServer, database: str) -> Iterator[None]:
    server.ask(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database)
    yield
    with server.connect(database) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = off")


@contextmanager
def not_durable(server: PostgresServer, database: str) -> Iterator[None]:
    server.ask(f"ALTER DATABASE {database} SET synchronous_commit = off")
    server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database)
    yield
    server.ask(f"ALTER DATABASE {database} RESET synchronous_commit")


@contextmanager
def without_a_table(server: PostgresServer, database: str) -> Iterator[None]:
    server.ask("ALTER TABLE gateways RENAME TO elsewhere", database=database)
    yield
    server.ask("ALTER TABLE elsewhere RENAME TO gateways", database=database)


@pytest.mark.parametrize("fault", [down, read_only, not_durable, without_a_table])
def test_nothing_is_answered_meanwhile_and_the_ledger_comes_back_by_itself(
    notary: Running, postgres_server: PostgresServer, database: str, fault: Fault
) -> None:
    check_fault(notary, fault(postgres_server, database))


def check_fault(notary: Running, fault: AbstractContextManager[None]) -> None:
    """The notary answers no operation during the fault, and each after it; a call that failed has taken nothing."""
    session_id = notary.front.ask(make_issue(max_calls=3)).session_id
    with fault:
        wait_for(lambda: told(notary, make_note()) == "ledger", "the fault")
        assert told(notary, budgeted(session_id)) != ""
        assert told(notary, make_issue()) != ""
    comes_back(notary)
    assert notary.front.ask(ReadBudget(session_id)).remaining == 3, "what was taken was given back"
    assert isinstance(notary.front.ask(budgeted(session_id)), Closed)
    assert notary.front.ask(ReadBudget(session_id)).remaining == 2
    assert walk_of(notary).intact


def test_a_call_that_ends_while_the_ledger_is_gone_stays_unresolved_until_it_is_back(
    notary: Running, postgres_server: PostgresServer
) -> None:
    asked = make_open()
    number = notary.front.begin(asked)
    postgres_server.kill()
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    with pytest.raises(Told) as refused:
        notary.front.finish(asked, number, make_result())
    assert (refused.value.problem, refused.value.part) == ("unavailable", "ledger")
    postgres_server.start()
    comes_back(notary)
    assert [one.intent_id for one in notary.front.ask(ListUnresolved(9))] in ([asked.intent_id], [])
    assert walk_of(notary).intact


def breaks_at_commit(
    notary: Running, monkeypatch: pytest.MonkeyPatch, *, is_done: bool, then: Callable[[], object] = lambda: None
) -> PostgresDatabase:
    """Have the connection break at the COMMIT of the next unit that writes, which the server has done by then or not,
    and something happen at that moment."""
    postgres, line = postgres_of(notary)
    execute, asked = line.execute, list[str]()

    def breaking(statement: Any, *more: Any) -> Any:
        asked.append(statement)
        if statement != "COMMIT" or TAKE_TURN not in asked:
            return execute(statement, *more)
        done = execute(statement) if is_done else None
        assert line._pipeline is not None
        line._pipeline.sync()
        line.pgconn.finish()  # the answer was on its way
        then()
        return done or execute(statement)

    monkeypatch.setattr(line, "execute", breaking)
    return postgres


def test_a_unit_whose_connection_breaks_at_its_commit_is_answered_when_the_server_has_it(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres = breaks_at_commit(notary, monkeypatch, is_done=True)
    line = postgres._line
    assert told(notary, make_note()) == ""
    comes_back(notary)
    assert postgres._line is not line, "it was lost"
    assert len(query(notary.front)) == 2
    assert walk_of(notary).intact


def test_a_unit_whose_connection_breaks_before_its_commit_is_not_answered(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks_at_commit(notary, monkeypatch, is_done=False)
    assert told(notary, make_note(reason="lost")) == "ledger"
    comes_back(notary)
    assert b"lost" not in b"".join(query(notary.front))
    assert walk_of(notary).intact


def test_the_server_is_not_asked_about_a_unit_that_never_reached_its_commit(
    notary: Running, postgres_server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(PostgresDatabase, "_was_committed", lambda _, transaction: asked.append(transaction))
    postgres_server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database)
    wait_for(lambda: told(notary, make_note()) == "ledger", "the loss")
    assert asked == []


def test_a_unit_is_not_answered_if_no_server_can_be_asked_about_it(
    notary: Running, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks_at_commit(notary, monkeypatch, is_done=False, then=postgres_server.kill)
    assert told(notary, make_note()) == "ledger"
    assert why(notary).startswith("PostgreSQL: "), "what was met is said"
    postgres_server.start()
    comes_back(notary)
    assert walk_of(notary).total_events == 1


def test_a_connection_to_a_server_that_takes_no_writes_any_more_is_given_up(
    notary: Running, postgres_server: PostgresServer
) -> None:
    postgres, line = postgres_of(notary)
    assert told(notary, make_note()) == ""
    postgres_server.ask("ALTER SYSTEM SET default_transaction_read_only = on")
    postgres_server.ask("SELECT pg_reload_conf()")
    wait_for(lambda: told(notary, make_note()) == "ledger", "the setting")
    assert postgres._seeker is not None
    assert postgres._seeker.daemon, "a notary that crashes meanwhile does not wait for it"
    postgres_server.ask("ALTER SYSTEM RESET default_transaction_read_only")
    postgres_server.ask("SELECT pg_reload_conf()")
    comes_back(notary)
    assert postgres._line is not line, "another one may be behind its name"


def test_a_failure_at_the_end_of_a_unit_fails_no_other_operation(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    notary = start(webhooks=hooks("chat"))
    assert told(notary, make_note()) == ""
    postgres_server.ask("ALTER TABLE outbox RENAME TO elsewhere", database=database)
    heard = [notary.front.heard(number) for number in notary.front.send(make_refuse(), make_note(), make_refuse())]
    assert [(one.problem, one.part) for one in heard] == [
        ("unavailable", "ledger"), (None, None), ("unavailable", "ledger")
    ]  # fmt: skip
    postgres_server.ask("ALTER TABLE elsewhere RENAME TO outbox", database=database)
    comes_back(notary)


REFUSES = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF position('refused' IN convert_from(NEW.bytes, 'utf8')) > 0 THEN RAISE 'refused'; END IF; RETURN NULL; END $$"""
AT_COMMIT = """CREATE CONSTRAINT TRIGGER refuses AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION refuse()"""


def test_a_failure_at_the_commit_fails_no_other_operation_and_keeps_the_connection(
    notary: Running, postgres_server: PostgresServer, database: str
) -> None:
    postgres, line = postgres_of(notary)
    for change in (REFUSES, AT_COMMIT):
        postgres_server.ask(change, database=database)
    asked = make_note(), make_note(reason="refused"), make_note()
    heard = [notary.front.heard(number) for number in notary.front.send(*asked)]
    assert [(one.problem, one.part) for one in heard] == [(None, None), ("unavailable", "ledger"), (None, None)]
    assert postgres._line is line
    assert len(query(notary.front)) == 2


REWRITES = "UPDATE tiles SET hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1) WHERE level = 0"


def test_a_ledger_that_was_rewritten_meanwhile_is_not_gone_on_with(
    notary: Running, postgres_server: PostgresServer, database: str
) -> None:
    for _ in range(3):
        notary.front.ask(make_note())
    notary.front.ask(ReadCheckpoint())
    postgres_server.ask(REWRITES, database=database)
    postgres_server.restart()
    wait_for(lambda: "does not continue the checkpoint" in why(notary), "what is found")
    postgres_server.ask(REWRITES, database=database)
    comes_back(notary)


def why(notary: Running) -> str:
    try:
        notary.front.ask(make_note())
    except Told as error:
        return str(error.cause)
    return ""


SWALLOWS = "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
TRIGGER = "CREATE TRIGGER swallows BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION swallow()"


@pytest.mark.parametrize(("changes", "reason"), [
    (["UPDATE meta SET value = '7' WHERE key = 'schema'"], "its schema is 7, known is 6"),
    ([SWALLOWS, TRIGGER], "it has a trigger swallows"),
    (["CREATE RULE swallows AS ON INSERT TO events DO INSTEAD NOTHING"], "it has a rule swallows"),
])  # fmt: skip
def test_a_start_refuses_a_ledger_of_a_later_version_or_with_prepared_tables(
    start: StartNotary, postgres_server: PostgresServer, database: str, changes: list[str], reason: str
) -> None:
    running = start()
    running.stop()
    for change in changes:
        postgres_server.ask(change, database=database)
    with pytest.raises(DatabaseGone, match=reason):
        open_state(running.settings)


def test_a_text_that_no_postgresql_takes_is_refused_and_takes_no_other_with_it(notary: Running) -> None:
    asked = [make_note(), make_note(principal="a\x00b"), make_note()]
    heard = [notary.front.heard(number) for number in notary.front.send(*asked)]
    assert [one.problem for one in heard] == [None, "refused", None]
    assert len(notary.front.ask(QueryEvents(EventQuery())).events) == 2
    assert notary.front.ask(ReadLedger()).unresolved == 0
