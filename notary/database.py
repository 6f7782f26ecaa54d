"""What the ledger asks of a database: units that are whole, and statements within them.

A SQLite file and a PostgreSQL give the same answers (tests/notary/ledger has one suite for both). Statements are those
of SQLite; a backend that speaks another dialect translates them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class DatabaseGone(Exception):
    """The database cannot be used now: missing, full, damaged, read-only, locked or silent for too long."""


class NotStorable(Exception):
    """A value that the database takes from no caller. Nothing was written."""


class Rows(Protocol):
    """What a statement answers."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchmany(self, size: int = ..., /) -> list[Any]:
        """So many of the next rows."""
        ...

    def fetchall(self) -> list[Any]:
        """All that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """The transaction that is open."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows:
        """One statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """The same statement with each of these rows."""
        ...


class Database(Protocol):
    """The writing connection of one notary. Every method but the last three may raise DatabaseGone."""

    gateway_id: str
    """Which of the gateways of a shared database this is."""
    check: Callable[[Connection], str | None] | None
    """Says of a database that was gone and is back why it is not the one of before."""
    has_old_frames: bool
    """What was overwritten before this start may still be in it."""

    @property
    def has_long_wal(self) -> bool:
        """Its log has grown beyond what it needs, and `cut_wal` would make it short."""
        ...

    @property
    def is_shared(self) -> bool:
        """True where other gateways write, too: nothing that was read in one unit holds in the next, unless
        `is_unchanged`. Such a database has no journal: what a unit writes is in its tables with the unit."""
        ...

    @property
    def is_unchanged(self) -> bool:
        """True within a unit when no other gateway has written since the last `follow`."""
        ...

    def follow(self) -> None:
        """What is kept in memory is what this unit, which was committed, has seen and written. Not every unit of a
        notary is followed: one that writes a checkpoint knows nothing of what others wrote before it."""
        ...

    def unit(self, *, writes: bool = True, is_durable: bool = True) -> AbstractContextManager[Connection]:
        """One transaction: durable when the block has ended, rolled back whole when it raises. With `is_durable` False
        a crash of the machine may undo it, whole, until the next one that is durable."""
        ...

    def cut_wal(self) -> bool:
        """Let go of what was overwritten. False while a reader needs it."""
        ...

    def tend(self) -> None:
        """Nothing else is to be done now."""
        ...

    def close(self) -> None:
        """Let go of it; a transaction that is open is rolled back."""
        ...
