"""A ledger in a PostgreSQL as readers see it, and as it is sealed."""

from pathlib import Path

import pytest

from notary.reading.source import NotReadable, Source, opened, written_state
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_note, make_open, record_call
from tests.notary.sealing.sealed_ledger import asked, copied_age, keys_of, seal_age, verify, write_ages
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]


def source_of(notary: Running) -> Source:
    assert notary.settings.ledger.url is not None
    return Source(notary.settings.ledger.url)


def test_a_reader_sees_concurrent_writes_and_can_not_write(start: StartNotary) -> None:
    one = start("one")
    one.front.ask(make_note())
    with pytest.raises(NotReadable, match="read-only transaction"), opened(source_of(one)) as reading:
        reading.execute("DELETE FROM events")
    one.front.ask(make_note())
    assert (walk_of(one).intact, walk_of(one).total_events) == (True, 2)


def test_a_ledger_of_another_version_is_not_read(
    start: StartNotary, postgres_server: PostgresServer, database: str
) -> None:
    one = start("one")
    one.stop()
    postgres_server.ask("UPDATE meta SET value = '99' WHERE key = 'schema'", database=database)
    with pytest.raises(NotReadable, match="its schema is 99"), opened(source_of(one)):
        pytest.fail("it was read")


def test_a_reader_notices_concurrent_writes(start: StartNotary) -> None:
    one = start("one")
    one.front.ask(make_note())
    with opened(source_of(one)) as reading:
        before = written_state(reading)
        assert written_state(reading) == before
        one.front.ask(make_note())
        assert written_state(reading) != before


def check(notary: Running, folder: Path) -> None:
    """The whole log verifies."""
    ledger = notary.settings.ledger
    arguments = [ledger.url, "--segments", folder / "segments", "--keys", keys_of(notary, folder / "keys.json")]
    arguments += ["--password-file", ledger.password_file] if ledger.password_file is not None else []
    ran = verify(*arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_postgresql_and_its_segments_verify_together(notary: Running, tmp_path: Path) -> None:
    asked = make_open()
    notary.front.ask(asked)
    write_ages(notary)
    seal_age(notary, tmp_path / "segments", 1)
    check(notary, tmp_path)
    seal_age(notary, tmp_path / "segments", 2)
    front = notary.start()
    record_call(front)
    with pytest.raises(Told, match="refused"):
        front.ask(make_open(intent_id=asked.intent_id))
    with pytest.raises(Told, match="refused"):
        front.answer(front.send(make_open(), make_open(intent_id=asked.intent_id))[1])
    notary.stop()
    check(notary, tmp_path)


def test_a_postgresql_is_sealed_while_its_gateway_serves(notary: Running, tmp_path: Path) -> None:
    sealed = copied_age(notary, tmp_path / "segments").sealed
    assert asked(notary, sealed).problem is None
    record_call(notary.front)
    wait_for(lambda: not asked(notary, sealed).left, "the deletion of sealed rows")
    notary.stop()
    check(notary, tmp_path)
