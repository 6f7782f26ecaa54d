"""A ledger in a PostgreSQL as those see it who only read."""

import pytest

from notary.reading.source import NotReadable, Source, opened, written_state
from tests.notary.backends.postgres.conftest import StartNotary
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_note
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
