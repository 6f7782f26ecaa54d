"""Which errors of SQLite mean that the file is damaged, and which that it could not be read; what a walk says then."""

import sqlite3
from contextlib import closing

import pytest

from notary.reading.whole import WholeWalk, is_damage
from tests.notary.reading.tampered import EVENTS, Tampered


def error(kind: type[sqlite3.DatabaseError], code: int | None = None) -> sqlite3.DatabaseError:
    """As SQLite raises it; without a code it is of Python's module itself."""
    made = kind("said")
    if code is not None:
        made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("found", "is_damaged"),
    [
        (error(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT), True),
        (error(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT_INDEX), True),
        (error(sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB), True),
        (error(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_READ), False),
        (error(sqlite3.OperationalError, sqlite3.SQLITE_BUSY), False),
        (error(sqlite3.OperationalError), True),
        (error(sqlite3.DatabaseError), False),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), True),
    ],
)
def test_a_malformed_page_or_text_is_damage_and_a_failed_read_is_not(
    found: sqlite3.DatabaseError | UnicodeDecodeError, is_damaged: bool
) -> None:
    assert is_damage(found) is is_damaged


def spoil(file: Tampered, table: str) -> None:
    """Zeros in the page that a table begins with."""
    with closing(sqlite3.connect(file.path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with file.path.open("r+b") as stored:
        stored.seek((page - 1) * size)
        stored.write(bytes(size))


def test_a_walk_that_meets_damage_ends_after_the_last_event_that_it_read_and_says_how_many_there_are(
    ledger_file: Tampered,
) -> None:
    spoil(ledger_file, "tiles")
    ledger_file.broken_at(EVENTS, "the file is damaged after it: ")
    assert ledger_file.verify().total_events == EVENTS
    walk = WholeWalk()
    with closing(sqlite3.connect(ledger_file.path)) as connection:
        assert not walk.step(connection)
    assert walk.broken is not None
    assert walk.broken.seq == EVENTS, "the place to look at"


def test_where_the_file_does_not_say_how_many_events_it_has_those_count_that_were_read(ledger_file: Tampered) -> None:
    spoil(ledger_file, "meta")
    report = ledger_file.verify()
    assert (report.intact, report.events_checked, report.total_events) == (False, EVENTS, EVENTS)


def test_a_walk_that_can_not_read_a_sound_file_says_nothing_of_it(ledger_file: Tampered) -> None:
    connection = sqlite3.connect(ledger_file.path)
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError):
        WholeWalk().step(connection)
