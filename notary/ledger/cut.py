"""Where a ledger begins, or ends, that was cut at a checkpoint: the table `meta` keeps it.

A running ledger and a sealed segment begin behind the cut `BEGINNING`; a segment ends at the cut `END`. While rows from
before the beginning are still there, `CLEARED` is the place up to which they are deleted. Tiles of the tree stay in the
ledger, so that roots, consistency proofs and checkpoints of every size go on. Pure functions of a connection.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ipc.evidence.events import LEDGER_SEALED
from ipc.texts.canonical import canonical_bytes
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.head import Head

BEGINNING: Final = "sealed"
END: Final = "segment_end"
CLEARED: Final = "cleared"
_WRITE: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
_READ: Final = "SELECT value FROM meta WHERE key = ?"
_FORGET: Final = "DELETE FROM meta WHERE key = ?"


Count = Annotated[int, Meta(ge=0, lt=2**62)]


class Cut(msgspec.Struct, frozen=True):
    """Everything before it is in segments. All zero: nothing is."""

    leaves: Count = 0
    """Size of the checkpoint at which it was cut."""
    events: Count = 0
    intents: Count = 0
    hash: str | None = None
    """Hash of the last event before it: the `prev_hash` of the first one behind it."""
    root: str = ""
    """Root of the tree of these leaves, hexadecimal."""
    open: Count = 0
    """Intents before it whose end is an event behind it."""
    epoch: Count = 0
    """The highest epoch that an event before it put in force."""
    until: str = ""
    """Time of the last event before it."""
    segment: str = ""
    """Name of the file that ends with it."""
    digest: str = ""
    """`sha256:<hex>` of that file; empty within the file."""

    @property
    def head(self) -> Head:
        """The end of the chain before it."""
        return Head(self.events, self.hash)

    def is_same_place(self, other: "Cut") -> bool:
        """True if both cut one ledger at one place; the digest is left out."""
        return msgspec.structs.replace(self, digest="") == msgspec.structs.replace(other, digest="")


NOTHING: Final = Cut()


def read_cut(connection: OpenTransaction, key: str) -> Cut:
    """The cut that a ledger keeps under this key; NOTHING for none. Raises DatabaseGone."""
    return _read(connection, key) or NOTHING


def read_cleared(connection: OpenTransaction) -> Cut | None:
    """The place up to which sealed rows are deleted; None once all of them are. Raises DatabaseGone."""
    return _read(connection, CLEARED)


def _read(connection: OpenTransaction, key: str) -> Cut | None:
    row = connection.execute(_READ, (key,)).fetchone()
    try:
        return None if row is None else msgspec.json.decode(row[0], type=Cut)
    except (TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise DatabaseGone(f"what the ledger says of its sealed segments makes no sense: {error}") from None


def write_cut(connection: OpenTransaction, key: str, cut: Cut) -> None:
    """Keep it; inside the transaction that cuts."""
    connection.execute(_WRITE, (key, msgspec.json.encode(cut).decode()))


def signed_bytes(told: Mapping[str, Any]) -> bytes:
    """The bytes that a receipt key signs of the `change` of a LedgerSealed event. Raises NotCanonical."""
    plain = {name: value for name, value in told.items() if name not in ("signature", "signing_key_id")}
    return canonical_bytes(plain | {"type": LEDGER_SEALED})


def forget_cleared(connection: OpenTransaction) -> None:
    """No sealed row is left; inside the transaction that deletes the last one."""
    connection.execute(_FORGET, (CLEARED,))
