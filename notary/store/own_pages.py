"""Texts that are erased later, in a SQLite file: each lies in pages of its own.

SQLite moves rows between pages when it splits or merges them, and what it moved stays behind in free room, which
`secure_delete` does not overwrite. A row's overflow pages are never moved, and are overwritten when they are freed.
So a table of such texts has the column ROOM before them: zeros that fill all of a row that lies in shared pages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from notary.database import OpenTransaction

SHARED_BYTES: Final = 4096 - 35
"""The most bytes of a row of a rowid table that lie in a page with other rows (the SQLite file format, "B-tree Cell
Format": U-35 of a page of 4096 bytes)."""
ROOM: Final = f"room BLOB NOT NULL DEFAULT (zeroblob({SHARED_BYTES}))"
"""The column before the texts."""
_HAS_TABLE: Final = "SELECT 1 FROM pragma_table_info(?)"
_HAS_ROOM: Final = "SELECT 1 FROM pragma_table_info(?) WHERE name = 'room'"
_INDEXES: Final = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"


@contextmanager
def erasing(connection: OpenTransaction) -> Iterator[None]:
    """Rows that are deleted or replaced here are overwritten with zeros, freed pages too. May stand inside another."""
    (before,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute("PRAGMA secure_delete=ON").fetchall()
    try:
        yield
    finally:
        connection.execute(f"PRAGMA secure_delete={before}").fetchall()


def move_to_own_pages(connection: OpenTransaction, table: str, statements: Sequence[str]) -> None:
    """Make a table of an earlier version anew, with ROOM; `statements` create it. Its old pages are overwritten.

    Inside the transaction that opens the file. Does nothing where the table has ROOM, or is not there yet.
    """
    if (
        connection.execute(_HAS_TABLE, (table,)).fetchone() is None
        or connection.execute(_HAS_ROOM, (table,)).fetchone() is not None
    ):
        return
    columns = ", ".join(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))
    with written_anew(connection, table, statements) as before:
        connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {before}")  # noqa: S608 - our names


@contextmanager
def written_anew(connection: OpenTransaction, table: str, statements: Sequence[str]) -> Iterator[str]:
    """Make a table anew, by these statements; the name of the one before, for copying its rows. Its pages are
    overwritten at the end."""
    before = f"{table}_of_before"
    with erasing(connection):
        for (index,) in connection.execute(_INDEXES, (table,)).fetchall():
            connection.execute(f"DROP INDEX {index}")
        connection.execute(f"ALTER TABLE {table} RENAME TO {before}")
        for statement in statements:
            connection.execute(statement)
        yield before
        connection.execute(f"DROP TABLE {before}")
