"""Names of the sealed segments, in the table `meta`: where to look for what the ledger has no more.

Functions of a connection inside an open transaction.
"""

from typing import Final

import msgspec

from ipc.operations.sealed import SealedSegment
from notary.database import DatabaseGone, OpenTransaction

_KEY: Final = "segments"
_READ: Final = "SELECT value FROM meta WHERE key = ?"
_WRITE: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"


def read(connection: OpenTransaction) -> tuple[SealedSegment, ...]:
    """All of them, oldest first. Raises DatabaseGone."""
    row = connection.execute(_READ, (_KEY,)).fetchone()
    try:
        return () if row is None else msgspec.json.decode(row[0], type=tuple[SealedSegment, ...])
    except msgspec.MsgspecError as error:
        raise DatabaseGone(f"the names of sealed segments make no sense: {error}") from None


def add(connection: OpenTransaction, segment: SealedSegment) -> None:
    """One more was sealed. Raises DatabaseGone."""
    connection.execute(_WRITE, (_KEY, msgspec.json.encode((*read(connection), segment)).decode()))
