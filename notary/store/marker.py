"""The marker of a store elsewhere, in the ledger. Functions of a connection.

The store has the marker, too: a store without it, or with another one, has lost its data, or belongs to another ledger.
A unit in doubt is a unit that the store may have applied and the ledger does not have. If the ledger went on, another
unit has its number.
"""

from notary.database import OpenTransaction

META = "store_marker"
DOUBT = "store_doubt:"
"""And the id of the gateway by which it has its record in the store."""


def read_marker(connection: OpenTransaction) -> str | None:
    """None for a ledger whose store lies in it."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (META,)).fetchone()
    return None if row is None else str(row[0])


def keep_marker(connection: OpenTransaction, marker: str) -> None:
    """From now on this is the ledger's store."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (META, marker))


def keep_doubt(connection: OpenTransaction, gateway: str, number: int) -> None:
    """The unit of this number changes nothing in the store: what the store has of it is of one that failed. It is never
    forgotten, since no other unit has this number."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (DOUBT + gateway, str(number)))


def read_doubt(connection: OpenTransaction, gateway: str) -> int | None:
    """The last one of this gateway, in doubt or not any more."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (DOUBT + gateway,)).fetchone()
    return None if row is None else int(row[0])


def forget_marker(connection: OpenTransaction) -> None:
    """From now on the store lies in the ledger."""
    connection.execute("DELETE FROM meta WHERE key = ?", (META,))
