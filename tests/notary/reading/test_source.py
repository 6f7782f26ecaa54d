"""A ledger's file as those see it who only read."""

import pytest

from notary.reading.source import NotReadable, Source, opened, written_state
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_note


def test_concurrent_writes_of_a_gateway_are_read(notary: Running) -> None:
    for number in (1, 2):
        notary.front.ask(make_note())
        assert (walk_of(notary).intact, walk_of(notary).total_events) == (True, number)


def test_a_reader_of_a_file_can_not_write_it(notary: Running) -> None:
    with pytest.raises(NotReadable, match="readonly database"), opened(Source(str(notary.path))) as reading:
        reading.execute("INSERT INTO meta (key, value) VALUES ('mine', '')")
    assert notary.stored("SELECT count(*) FROM meta WHERE key = 'mine'") == [0]


def test_a_reader_notices_concurrent_writes(notary: Running) -> None:
    notary.front.ask(make_note())
    with opened(Source(str(notary.path))) as reading:
        before = written_state(reading)
        notary.front.ask(make_note())
        assert written_state(reading) != before
