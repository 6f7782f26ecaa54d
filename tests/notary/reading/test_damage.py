"""Which errors of SQLite mean that the file is damaged, and which that it could not be read."""

import sqlite3

import pytest

from notary.reading.whole import is_damage


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
def test_a_page_that_is_none_or_a_text_that_is_none_is_damage_and_a_failed_read_is_not(
    found: sqlite3.DatabaseError | UnicodeDecodeError, is_damaged: bool
) -> None:
    assert is_damage(found) is is_damaged
