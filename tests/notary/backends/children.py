"""Programs that tests of the database run in separate processes: `python -m tests.notary.backends.children ROLE PATH
…`."""

import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from notary.backends.sqlite import SqliteDatabase
from notary.database import DatabaseGone

NOBODY = 65534


def say(text: str) -> None:
    """One line to the test."""
    print(text, flush=True)


def table(connection: sqlite3.Connection) -> None:
    """The schema of these tests."""
    connection.execute("CREATE TABLE IF NOT EXISTS things (name TEXT PRIMARY KEY, body BLOB)")


def fill_disk(path: Path) -> None:
    """Write until no file may grow, then with room again; say what happened."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database = SqliteDatabase(path, table)
    database.open()

    def write(name: str) -> str:
        try:
            with database.unit() as connection:
                connection.execute("INSERT INTO things VALUES (?, ?)", (name, os.urandom(40_000)))
        except DatabaseGone as error:
            return f"gone: {error}"
        return "written"

    say(write("first"))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    outcomes = [write(f"n{number}") for number in range(20)]
    say(next(outcome for outcome in outcomes if outcome != "written"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    say(write("last"))
    with database.unit(writes=False) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM things")}
    expected = {"first", "last"} | {f"n{number}" for number, outcome in enumerate(outcomes) if outcome == "written"}
    say(f"kept exactly what was written: {names == expected}")


def write_read_only(path: Path) -> None:
    """Open as a user who may only read; say what happens."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        SqliteDatabase(path, table).open()
        say("opened")
    except DatabaseGone as error:
        say(f"gone: {error}")


ROLES: dict[str, Callable[..., None]] = {role.__name__: role for role in (fill_disk, write_read_only)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
