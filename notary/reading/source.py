"""Where a ledger is that is only read: a SQLite file or a PostgreSQL, and a connection to it that can't write.

For programs of their own: the reader, the offline check, a look at one trace. Guarantees one kind of error for whatever
keeps it from being read.
"""

import contextlib
import sqlite3
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ipc.process.private_files import PrivateFileError
from ipc.settings import LedgerSettings
from notary.backends.sqlite import connect
from notary.database import OpenTransaction
from notary.ledger.head import read_head
from notary.ledger.schema import SCHEMA_VERSION, planted, schema_version

POSTGRES = ("postgresql://", "postgres://")


class NotReadable(Exception):
    """It can't be read now. The text is a sentence for people."""


class Source(msgspec.Struct, frozen=True):
    """`place` is a path, or an address as `ledger.url` has it."""

    place: str
    password_file: str | None = None
    ca_file: str | None = None

    @property
    def file(self) -> Path | None:
        """None where it is a PostgreSQL."""
        return None if self.place.startswith(POSTGRES) else Path(self.place)


def add_source(parser: ArgumentParser, **place: Any) -> None:
    """Arguments that say where it is; `place` is how the first of them is called and told of."""
    parser.add_argument("place", **place)
    parser.add_argument("--password-file", metavar="FILE", help="file with the password for a PostgreSQL")
    parser.add_argument("--ca-file", metavar="FILE", help="certificates (PEM) that verify a PostgreSQL over TLS")


def source_in(options: Namespace) -> Source:
    """The source that the options name."""
    return Source(options.place, options.password_file, options.ca_file)


@contextlib.contextmanager
def opened(source: Source) -> Iterator[OpenTransaction]:
    """A connection to read with; BEGIN and ROLLBACK are its caller's. Raises NotReadable, in the block too."""
    if source.file is not None:
        try:
            with contextlib.closing(connect(source.file, writes=False)) as connection:
                if (name := planted(connection)) is not None:
                    raise NotReadable(f"{source.file} has a {name}, which no gateway makes")
                yield connection
        except sqlite3.Error as error:
            raise NotReadable(f"{source.file}: {error}") from error
    else:
        with _postgres(source) as reading:
            yield reading


def written_state(connection: OpenTransaction) -> object:
    """A value that changes with each write by others: two that are equal mean that there was none in between.

    Outside of a transaction. None where a file is damaged, which is for a walk to tell; raises what a PostgreSQL does.
    """
    if isinstance(connection, sqlite3.Connection):
        with contextlib.suppress(sqlite3.Error):
            return connection.execute("PRAGMA data_version").fetchone()
        return None
    return read_head(connection)  # a PostgreSQL has no journal: each unit moves the head


@contextlib.contextmanager
def _postgres(source: Source) -> Iterator[OpenTransaction]:
    import psycopg

    from notary.backends.postgres.place import PostgresTarget, said_of
    from notary.backends.postgres.statements import Statements
    from notary.ledger.postgres import OWN

    try:
        place = PostgresTarget(
            LedgerSettings(url=source.place, password_file=source.password_file, ca_file=source.ca_file)
        )
        with contextlib.closing(place.connect(reads=True)) as line:
            reading = Statements(line, OWN)
            if (version := schema_version(reading)) != SCHEMA_VERSION:
                raise NotReadable(f"{source.place} is not a ledger that this version knows: its schema is {version}")
            yield reading
    except psycopg.Error as error:
        raise NotReadable(f"{source.place}: {said_of(error)}") from error
    except (ValueError, PrivateFileError, OSError) as error:
        raise NotReadable(f"{source.place}: {error}") from error
