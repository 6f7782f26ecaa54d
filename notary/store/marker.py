"""What the ledger remembers of a store elsewhere: the marker that lies there, too. Functions of a connection.

A store without it, or with another one, has lost its data, or is not the store of this ledger.
"""

from notary.database import Connection

META = "store_marker"


def read_marker(connection: Connection) -> str | None:
    """None for a ledger whose store lies in it."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (META,)).fetchone()
    return None if row is None else str(row[0])


def keep_marker(connection: Connection, marker: str) -> None:
    """From now on this is the ledger's store."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (META, marker))


def forget_marker(connection: Connection) -> None:
    """From now on the store lies in the ledger."""
    connection.execute("DELETE FROM meta WHERE key = ?", (META,))
