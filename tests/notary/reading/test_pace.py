"""A long walk gives way to calls that are written meanwhile."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ipc.limits import READER_SECONDS
from notary.backends.sqlite import connect
from notary.reading.pace import LONGEST_REST_SECONDS, REST, Pace

STEP = 0.0625


class Clock:
    """A clock that advances when a test sets it, and by the seconds of every sleep."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.rests: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


Both = tuple[sqlite3.Connection, sqlite3.Connection]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    """The writer's and the reader's connection of a database that has a log."""
    file = tmp_path / "ledger.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE calls (number INTEGER)")
        with closing(connect(file, writes=False)) as reader:
            yield writer, reader


def test_while_calls_are_written_it_rests_several_times_as_long_as_each_step_took(both: Both) -> None:
    (writer, reader), clock = both, Clock()
    pace = Pace(reader, clock, clock.sleep)
    for step in (STEP, 2 * STEP):
        writer.execute("INSERT INTO calls VALUES (1)")
        clock.now += step
        pace.rest()
    assert clock.rests == [REST * STEP, REST * 2 * STEP]


def test_a_step_that_had_to_wait_itself_is_followed_by_no_long_rest(both: Both) -> None:
    (writer, reader), clock = both, Clock()
    pace = Pace(reader, clock, clock.sleep)
    writer.execute("INSERT INTO calls VALUES (1)")
    clock.now += 60
    pace.rest()
    assert clock.rests == [LONGEST_REST_SECONDS]


def test_a_file_that_is_no_database_is_left_to_the_walk_to_tell(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite3").write_bytes(b"no database" * 1000)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as reader:
        pace = Pace(reader)
        pace.rest()


def test_it_does_not_pause_while_no_writer_is_active(both: Both) -> None:
    (writer, reader), clock = both, Clock()
    writer.execute("INSERT INTO calls VALUES (1)")
    pace = Pace(reader, clock, clock.sleep)
    for _ in range(3):
        clock.now += STEP
        pace.rest()
    assert clock.rests == []


def test_in_the_second_half_of_its_time_it_rests_no_more(both: Both) -> None:
    (writer, reader), clock = both, Clock()
    began, pace = clock.now, Pace(reader, clock, clock.sleep)
    for seconds in (READER_SECONDS / 2 - 1, READER_SECONDS / 2):
        writer.execute("INSERT INTO calls VALUES (1)")
        clock.now = began + seconds
        pace.rest()
    assert len(clock.rests) == 1, "a moment before it rests still"
