"""Gateways of two versions on one ledger: the tables never change below one that is connected."""

import time
from types import SimpleNamespace

import pytest

from ipc.operations.calls import Closed
from ipc.operations.intents import ListUnresolved
from notary.backends.postgres.database import USERS_LOCK
from notary.database import DatabaseGone
from notary.ledger import postgres
from notary.opening import open_state
from tests.notary.backends.postgres.test_faults import comes_back, why
from tests.notary.backends.redis.test_faults import told
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_note, make_open, make_result
from tests.support.gateway import wait_for
from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]
NEXT = ("7", "ALTER TABLE events ADD COLUMN more text")


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts from now on has a version with another schema."""
    monkeypatch.setattr(postgres, "STEPS", (*postgres.STEPS, NEXT))


SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"


def stop(server: PostgresServer, database: str, *gateways: Running) -> None:
    """Stop the last gateways of a ledger: the server ends their sessions, and with them their locks, a moment later."""
    for gateway in gateways:
        gateway.stop()
    wait_for(lambda: server.ask(SESSIONS, database) == [(0,)], "the end of their sessions")


def test_a_newer_version_changes_nothing_until_the_last_older_gateway_has_stopped(
    start: StartNotary, request: pytest.FixtureRequest, postgres_server: PostgresServer, database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(postgres, "ALONE_SECONDS", 0.2)
    older, last = start("older"), start("last")
    asked = make_open()
    number = last.front.begin(asked)
    request.getfixturevalue("newer")
    older.stop()
    with pytest.raises(DatabaseGone, match="gateways that write its schema 6 are connected: stop all"):
        open_state(older.settings)
    assert isinstance(last.front.finish(asked, number, make_result()), Closed), "the older one serves on"
    assert walk_of(last).intact
    stop(postgres_server, database, last)
    older.start()
    assert told(older, make_note()) == ""


def test_a_newer_version_waits_for_the_session_of_an_older_gateway_that_has_just_ended(
    start: StartNotary, request: pytest.FixtureRequest, postgres_server: PostgresServer, database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    older = start("older")
    stop(postgres_server, database, older)
    with postgres_server.connect(database) as lingering:
        lingering.execute(f"SELECT pg_advisory_lock_shared({USERS_LOCK})")

        def pause(seconds: float) -> None:
            lingering.close()
            time.sleep(seconds)

        request.getfixturevalue("newer")
        monkeypatch.setattr(postgres, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
        older.start()
    assert told(older, make_note()) == ""


def test_gateways_of_a_newer_version_that_start_together_bring_the_ledger_to_it_once(
    start: StartNotary, request: pytest.FixtureRequest, postgres_server: PostgresServer, database: str
) -> None:
    one, other = start("one"), start("other")
    stop(postgres_server, database, one, other)
    request.getfixturevalue("newer")
    one.start()
    other.start()
    assert (told(one, make_note()), told(other, make_note())) == ("", "")


def test_an_older_gateway_does_not_go_on_with_a_ledger_that_has_changed_while_its_server_was_away(
    notary: Running, postgres_server: PostgresServer, database: str
) -> None:
    asked = make_open()
    notary.front.begin(asked)
    postgres_server.ask("UPDATE meta SET value = '7' WHERE key = 'schema'", database=database)
    postgres_server.restart()
    wait_for(lambda: "its schema is 7 now, this gateway writes 6" in why(notary), "what is found")
    postgres_server.ask("UPDATE meta SET value = '6' WHERE key = 'schema'", database=database)
    comes_back(notary)
    assert [view.intent_id for view in notary.front.ask(ListUnresolved(9))] == [asked.intent_id]
