"""One row for each gateway of a shared ledger: the number and the answers of its last unit.

A ledger of one gateway has it in its journal (notary/ledger/page_ring.py). Owns the table `gateways`; functions of a
connection. The row is read under the lock of the ledger, so that no earlier unit is still under way.
"""

import msgspec

from notary.database import Database, DatabaseGone, OpenTransaction
from notary.ledger import page_ring
from notary.ledger.page_ring import Remembered, RingContent

_READ = "SELECT number, answers FROM gateways WHERE gateway_id = ?"
_WRITE = (
    "INSERT INTO gateways (gateway_id, number, answers) VALUES (?, ?, ?)"
    " ON CONFLICT (gateway_id) DO UPDATE SET number = excluded.number, answers = excluded.answers"
)
_SIGNED = "UPDATE gateways SET checkpoint = ? WHERE gateway_id = ?"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Remembered]).decode


def read_last(database: Database, connection: OpenTransaction) -> RingContent:
    """The last unit of this gateway, and what is not in its tables yet. Raises DatabaseGone."""
    if not database.is_shared:
        return page_ring.read(connection)
    row = connection.execute(_READ, (database.gateway_id,)).fetchone()
    if row is None:
        return RingContent([], 0, 0, 0, [])
    try:
        return RingContent([], row[0], row[0], 0, _decode(row[1]))
    except msgspec.MsgspecError as error:
        raise DatabaseGone(f"what was answered last makes no sense: {error}") from None


def remember(connection: OpenTransaction, gateway_id: str, number: int, answers: list[Remembered]) -> None:
    """A unit of this gateway, inside its transaction."""
    connection.execute(_WRITE, (gateway_id, number, _encode(answers)))


def note_checkpoint(connection: OpenTransaction, gateway_id: str, size: int) -> None:
    """This gateway has signed a checkpoint of this size."""
    connection.execute(_SIGNED, (size, gateway_id))


def last_checkpoint(connection: OpenTransaction, gateway_id: str) -> int | None:
    """Leaves of the last checkpoint of this gateway; None if it has signed none."""
    row = connection.execute("SELECT checkpoint FROM gateways WHERE gateway_id = ?", (gateway_id,)).fetchone()
    return None if row is None else row[0]
