"""Which PostgreSQL will do: reached by name, password and TLS, durable, and one at all."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from ipc.operations.calls import Closed
from ipc.settings import LedgerSettings, Settings
from notary.backends.postgres.fitness import judge, problem_of_postgres
from notary.backends.postgres.place import PostgresConnection, PostgresTarget, SettingsDropped
from notary.database import DatabaseGone
from notary.opening import open_state
from notary.programs.backup import NotBackedUp, back_up
from tests.faults.between import Between
from tests.notary.running import NotaryProcess, settings_in
from tests.notary.samples import make_open
from tests.support.certificates import made_certificate
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.large
PASSWORD = "a password of words"


def problem(ledger: LedgerSettings) -> str:
    """The problem as `gateway check --connect` prints it; empty if there is no problem."""
    return problem_of_postgres(Settings("/state", "http://gateway.test", ledger=ledger)) or ""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresServer, LedgerSettings]]:
    """A server that wants a password and TLS of who is not of its own user."""
    folder: Path = tmp_path_factory.mktemp("tls")
    certificate = made_certificate(folder)
    server = PostgresServer()
    for name in ("key.pem", "certificate.pem"):
        shutil.copy(folder / name, server.data / name)
        (server.data / name).chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(server.data / name, "nobody", "nogroup")
    server.ask(f"CREATE USER ann PASSWORD '{PASSWORD}'")
    server.ask("CREATE DATABASE anns OWNER ann")
    rules = server.data / "pg_hba.conf"
    rules.write_text("hostssl all ann 127.0.0.1/32 scram-sha-256\nhost all ann all reject\n" + rules.read_text())
    for name, value in (("ssl_cert_file", "certificate.pem"), ("ssl_key_file", "key.pem"), ("ssl", "on")):
        server.ask(f"ALTER SYSTEM SET {name} = '{value}'")
    server.restart()
    password = folder / "password"
    password.write_text(PASSWORD + "\n")
    password.chmod(0o600)
    url = f"postgresql://ann@localhost:{server.port}/anns"
    yield server, LedgerSettings(url=url, password_file=str(password), ca_file=str(certificate))
    server.close()


@pytest.mark.usefixtures("patient_backends")
def test_name_password_and_certificate_are_held_against_it(
    closed: tuple[PostgresServer, LedgerSettings], tmp_path: Path
) -> None:
    server, ledger = closed
    assert problem(ledger) == ""
    wrong = tmp_path / "wrong"
    wrong.write_text("no password")
    wrong.chmod(0o600)
    for changes in (
        {"password_file": None}, {"password_file": str(wrong)}, {"ca_file": None},
        {"password_file": str(tmp_path / "none")}, {"url": f"postgresql://ann@127.0.0.1:{server.port}/anns"},
    ):  # fmt: skip
        changed = msgspec.structs.replace(ledger, **changes)
        for told in (problem(changed), refusal(tmp_path, changed)):
            assert "can't be used: " in told
            assert PASSWORD not in told
            assert "\n" not in told


def refusal(folder: Path, ledger: LedgerSettings) -> str:
    """As a start says it, which ends with Exit.UNAVAILABLE."""
    with pytest.raises(DatabaseGone) as refused:
        open_state(settings_in(folder / "state", ledger=ledger))
    return str(refused.value)


@pytest.mark.usefixtures("patient_backends")
def test_a_standby_is_refused_by_check_and_start(closed: tuple[PostgresServer, LedgerSettings], tmp_path: Path) -> None:
    server, ledger = closed
    signal = server.data / "standby.signal"
    signal.touch()
    server.restart()
    try:
        for told in (problem(ledger), refusal(tmp_path, ledger)):
            assert "This PostgreSQL is a standby, which takes no writes: name its primary" in told
    finally:
        signal.unlink()
        server.restart()


def test_a_notary_behind_its_walls_speaks_tls_and_connects_again(
    closed: tuple[PostgresServer, LedgerSettings], redis_server: RedisServer, tmp_path: Path
) -> None:
    server, ledger = closed
    store = msgspec.structs.replace(redis_server.settings, redis_prefix="fitness")
    process = NotaryProcess(settings_in(tmp_path, ledger=ledger, store=store, dev_mode=True))
    process.ready()
    front = process.attach("front-1")
    assert isinstance(front.ask(make_open()), Closed)
    server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann'")
    while front.heard(front.send(make_open())[0]).problem is not None:
        pass
    front.close()
    assert process.stop() == 0


def test_a_server_that_is_no_postgresql_is_reported_in_one_sentence(redis_server: RedisServer, tmp_path: Path) -> None:
    for url in (
        f"postgresql://u@127.0.0.1:{redis_server.port}/d", "postgresql://u@127.0.0.1:9/d",
        "postgresql://u@no-such-name.invalid/d", f"postgresql://u@/d?host={tmp_path}",
    ):  # fmt: skip
        for told in (problem(LedgerSettings(url=url)), refusal(tmp_path, LedgerSettings(url=url))):
            assert told.startswith(f"ledger.url = '{url}': can't be used: ")
            assert "\n" not in told


@pytest.mark.usefixtures("patient_backends")
def test_a_server_that_loses_or_refuses_writes_will_not_do(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    ledger = postgres_server.settings(database)
    assert problem(ledger) == ""
    for setting, value, why in (
        ("synchronous_commit", "off", "synchronous_commit is off"),
        ("default_transaction_read_only", "on", "takes no writes"),
    ):
        postgres_server.ask(f"ALTER DATABASE {database} SET {setting} = {value}")
        assert why in problem(ledger)
        assert why in refusal(tmp_path, ledger)
        with postgres_server.connect("postgres") as connection:
            connection.execute(f"ALTER DATABASE {database} RESET {setting}")


class Pooler(Between):
    """Drops the parameter `options` of a session's start, as pgbouncer does when configured to ignore it."""

    def passed_on(self, data: bytes) -> bytes:
        if data[4:8] != b"\0\3\0\0":  # of protocol 3.0 is the first message of a session, and no other
            return data
        words = data[8:].rstrip(b"\0").split(b"\0")
        kept = [pair for pair in zip(words[::2], words[1::2], strict=True) if pair[0] != b"options"]
        body = data[4:8] + b"".join(name + b"\0" + value + b"\0" for name, value in kept) + b"\0"
        return (len(body) + 4).to_bytes(4, "big") + body


def test_a_pooler_that_drops_the_settings_of_sessions_will_not_do(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    straight = postgres_server.settings(database, by_tcp=True)
    assert problem(straight) == ""
    pooler = Pooler(("127.0.0.1", postgres_server.port))
    try:
        url = str(straight.url).replace(f":{postgres_server.port}/", f":{pooler.port}/")
        through = msgspec.structs.replace(straight, url=url)
        for told in (problem(through), refusal(tmp_path, through)):
            assert f"ledger.url = '{url}': can't be used: PostgreSQL: statement_timeout is '0' and not '4000'" in told
            assert "Name the server itself" in told
        with pytest.raises(SettingsDropped):
            PostgresTarget(through).connect(reads=True)
    finally:
        pooler.close()


@pytest.mark.usefixtures("patient_backends")
def test_another_encoding_will_not_do(postgres_server: PostgresServer, database: str) -> None:
    name = f"{database}_latin"
    postgres_server.ask(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    assert "has the encoding LATIN1" in problem(postgres_server.settings(name))


@pytest.mark.usefixtures("patient_backends")
def test_fsync_off_will_not_do_outside_dev_mode(database: str) -> None:
    server = PostgresServer("fsync = off")
    try:
        settings = Settings("/state", "http://gateway.test", ledger=server.settings(server.new_database()))
        assert "fsync is off" in str(problem_of_postgres(settings))
        assert problem_of_postgres(msgspec.structs.replace(settings, dev_mode=True)) is None
    finally:
        server.close()


class Answering:
    """A line to a server of whatever kind, which answers the question after what it is."""

    def __init__(self, row: tuple[object, ...] | None) -> None:
        self.row = row

    def hurry(self) -> None:
        """It is in none."""

    def execute(self, _: str) -> "Answering":
        return self

    def fetchone(self) -> tuple[object, ...] | None:
        return self.row


FIT = (False, "140000", "UTF8", "off", "on", "on", "on")


@pytest.mark.parametrize(("row", "wrong", "weak"), [
    (FIT, [], []),
    ((False, "139999", *FIT[2:]), ["PostgreSQL of number 139999 is too old"], []),
    ((False, "fifteen", *FIT[2:]), ["PostgreSQL of number fifteen is too old"], []),
    ((*FIT[:4], "local", "on", "on"), [], []),
    ((*FIT[:5], "off", "off"), [], ["Its fsync is off", "Its full_page_writes is off"]),
    (
        None, ["PostgreSQL of number 0 is too old", "is a standby", "the encoding None"],
        ["Its fsync is off", "Its full_page_writes is off"],
    ),
])  # fmt: skip
def test_a_server_is_judged_by_what_it_says_of_itself(
    row: tuple[object, ...] | None, wrong: list[str], weak: list[str]
) -> None:
    verdict = judge(cast(PostgresConnection, Answering(row)))
    for sentences, words in ((verdict.wrong, wrong), (verdict.weak, weak)):
        assert len(sentences) == len(words)
        assert all(word in sentence for sentence, word in zip(sentences, words, strict=True))


@pytest.mark.usefixtures("patient_backends")
def test_gateway_backup_says_what_backs_it_up(postgres_server: PostgresServer, database: str, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, ledger=postgres_server.settings(database))
    with pytest.raises(NotBackedUp, match="pg_dump"):
        back_up(settings, tmp_path / "backup", with_keys=False)
    assert not (tmp_path / "backup").exists()
