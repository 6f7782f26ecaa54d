"""Writes kept values, and sums of them, of a SQLite file to other pages once some were erased.

A page that was split keeps copies of rows that it had, in its free room, and no setting overwrites them: pages that are
given back are overwritten. Functions of a connection inside an open transaction.
"""

from typing import Final

from notary.database import OpenTransaction
from notary.store.own_pages import erasing

REWRITTEN: Final = 10_000
"""Rows of a table that are written anew in one unit, which takes a tenth of a second."""
TABLES: Final = {
    "kept_values": ("key", "pointer", "seq", "kind", "value", "salt", "erased_by"),
    "activity_sums": ("step", "hour", "action_id", "pointer", "sum"),
}


def write_anew(connection: OpenTransaction) -> bool:
    """Write the rows of each table to other pages. False if one has more than REWRITTEN rows: it is left as it is."""
    with erasing(connection):
        written = [_write_table(connection, table, columns) for table, columns in TABLES.items()]
    return all(written)


def _write_table(connection: OpenTransaction, table: str, columns: tuple[str, ...]) -> bool:
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    if connection.execute(f"SELECT 1 FROM {table} LIMIT 1 OFFSET {REWRITTEN}").fetchone() is not None:  # noqa: S608
        return False
    rows = connection.execute(f"SELECT {names} FROM {table}").fetchall()  # noqa: S608 - our names
    connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our names
    connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)  # noqa: S608 - our names
    return True
