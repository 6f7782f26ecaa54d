"""How a PostgreSQL is connected to: what ends by itself, as whom, and what of it is said."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from ipc.settings import LedgerSettings
from notary.backends.postgres.place import PostgresTarget, PostgresTimeouts, said_of
from tests.notary.running import ROOT
from tests.support.names import SERVICE, resolve_to
from tests.support.postgres_server import PostgresServer

ENDS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


@pytest.mark.large
@pytest.mark.parametrize(("reads", "ends"), [(False, ("2s", "4s", "5s")), (True, ("2s", "0", "1min"))])
def test_the_server_itself_ends_what_a_gateway_waits_for_and_what_it_leaves(
    postgres_server: PostgresServer, database: str, reads: bool, ends: tuple[str, ...]
) -> None:
    with PostgresTarget(postgres_server.settings(database)).connect(reads=reads) as line:
        shown = [line.execute("SELECT current_setting(%s)", [name]).fetchone() for name in ENDS]
        assert shown == [(value,) for value in ends]
        assert line.execute("SHOW default_transaction_read_only").fetchone() == ("on" if reads else "off",)
        assert line.info.transaction_status is psycopg.pq.TransactionStatus.IDLE, "nobody has begun one"


@pytest.mark.large
def test_a_hurried_gateway_waits_for_a_lock_half_of_its_time(postgres_server: PostgresServer, database: str) -> None:
    with PostgresTarget(postgres_server.settings(database), PostgresTimeouts(unit=3.0)).connect() as line:
        shown = [line.execute("SELECT current_setting(%s)", [name]).fetchone() for name in ENDS]
        assert shown == [("1500ms",), ("3s",), ("5s",)]


def test_the_default_user_is_the_one_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = LedgerSettings(url=f"postgresql:///anns?host={tmp_path}")
    assert PostgresTarget(settings)._parameters(reads=False)["user"] == pwd.getpwuid(os.geteuid()).pw_name

    def unknown(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert PostgresTarget(settings)._parameters(reads=False)["user"] == str(os.geteuid())
    named = LedgerSettings(url=f"postgresql://ann@/anns?host={tmp_path}")
    assert PostgresTarget(named)._parameters(reads=False)["user"] == "ann"


@pytest.mark.parametrize(("error", "said"), [
    (psycopg.OperationalError("it is gone\nfor good"), "PostgreSQL: it is gone"),
    (psycopg.OperationalError(""), "PostgreSQL: OperationalError"),
    (psycopg.OperationalError("x" * 300), f"PostgreSQL: {'x' * 200}"),
    (ValueError("a number"), "PostgreSQL: ValueError: a number"),
    (ValueError("x" * 300), f"PostgreSQL: ValueError: {'x' * 200}"),
])  # fmt: skip
def test_an_error_of_the_client_is_said_in_one_line(error: Exception, said: str) -> None:
    assert said_of(error) == said


def test_a_name_is_looked_up_once_and_a_socket_has_none(tmp_path: Path) -> None:
    by_name = PostgresTarget(LedgerSettings(url="postgresql://ann@localhost:7000/anns"))._parameters(reads=False)
    addresses = by_name["hostaddr"].split(",")
    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert by_name["host"].split(",") == ["localhost"] * len(addresses)
    by_socket = PostgresTarget(LedgerSettings(url=f"postgresql://ann@/anns?host={tmp_path}"))._parameters(reads=False)
    assert (by_socket["host"], "hostaddr" in by_socket) == (str(tmp_path), False)


@pytest.mark.large
def test_every_address_of_a_name_is_tried_and_the_one_that_answers_is_kept_in_front(
    postgres_server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, "::1", "127.0.0.9", "127.0.0.1")
    url = str(postgres_server.settings(database, by_tcp=True).url).replace("127.0.0.1", SERVICE)
    place = PostgresTarget(LedgerSettings(url=url))
    for _ in range(2):
        with place.connect() as line:
            assert line.execute("SELECT 1").fetchone() == (1,)
        assert place._numeric[0] == "127.0.0.1"


LOGS = "import logging, notary.backends.postgres.place; {first}logging.getLogger('psycopg').warning('of somebody')"


@pytest.mark.parametrize("first", ["", "logging.basicConfig(); "], ids=["no log", "a log of everything"])
def test_the_clients_own_log_lines_are_dropped(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGS.format(first=first)], cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
