"""The interface of a database: atomic units, and statements within them.

A SQLite file and a PostgreSQL give the same answers (tests/notary/ledger has one suite for both). Statements are those
of SQLite; a backend that speaks another dialect translates them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class DatabaseGone(Exception):
    """The database cannot be used now: missing, full, damaged, read-only, locked or silent for too long."""


class NotStorable(Exception):
    """A value that no database stores. No row was written."""


class Rows(Protocol):
    """The answer of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchmany(self, size: int = ..., /) -> list[Any]:
        """At most `size` of the next rows."""
        ...

    def fetchall(self) -> list[Any]:
        """All that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class OpenTransaction(Protocol):
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
    check: Callable[[OpenTransaction], str | None] | None
    """Returns why a database that was gone and is back is not the same; None if it is."""
    has_old_frames: bool
    """True if its log may still hold data that was overwritten before this start."""

    @property
    def has_long_wal(self) -> bool:
        """Its log has grown beyond what it needs, and `cut_wal` would make it short."""
        ...

    @property
    def is_shared(self) -> bool:
        """True where other gateways write, too: a value read in one unit may be outdated in the next, unless
        `is_unchanged`. It has no journal: a unit writes its rows to their tables."""
        ...

    @property
    def is_unchanged(self) -> bool:
        """True within a unit when no other gateway has written since the last `follow`."""
        ...

    def follow(self) -> None:
        """The values in memory are those of this committed unit. Not every unit is followed: the unit that writes a
        checkpoint has not read what other gateways wrote before it."""
        ...

    def unit(self, *, writes: bool = True, is_durable: bool = True) -> AbstractContextManager[OpenTransaction]:
        """One transaction: durable when the block has ended, rolled back whole when it raises. With `is_durable` False
        a crash of the machine may undo it, whole, until the next one that is durable."""
        ...

    def cut_wal(self) -> bool:
        """Let go of what was overwritten. False while a reader needs it."""
        ...

    def tend(self) -> None:
        """Do work that can wait until the notary is idle."""
        ...

    def close(self) -> None:
        """Let go of it; a transaction that is open is rolled back."""
        ...
