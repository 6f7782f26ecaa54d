"""The last checkpoint that each configured witness has cosigned, in the database, and its last trouble, in memory.

Guarantees that only a configured key counts: cosignatures under an earlier key are forgotten.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.keys.verifier_keys import WITNESS, VerifierKey, read_verifier_key
from ipc.operations.witnesses import WitnessStatus
from ipc.process.clock import iso
from ipc.settings import WitnessSettings
from ipc.texts.foreign_texts import clean_reason
from notary.database import DatabaseGone, OpenTransaction

META: Final = "witnesses"
_READ = "SELECT value FROM meta WHERE key = ?"
_WRITE = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"


class Cosigned(msgspec.Struct, frozen=True):
    """The largest checkpoint with a cosignature by this key, and when that was made (Unix seconds)."""

    key: str
    size: int
    time: int


class ConfiguredWitnesses:
    """Those of one configuration, by name."""

    def __init__(self, rows: Iterable[WitnessSettings] = (), cosigned: dict[str, Cosigned] | None = None) -> None:
        """Raises NoVerifierKey."""
        self.keys: dict[str, VerifierKey] = {row.name: read_verifier_key(row.key, WITNESS) for row in rows}
        self.cosigned = {
            name: one for name, one in (cosigned or {}).items() if name in self.keys and one.key == self.keys[name].text
        }
        self._problems: dict[str, str] = {}

    def follow(self, name: str, cosigned: Cosigned) -> None:
        """Take the last cosignature of a witness once it is durable."""
        self.cosigned[name] = cosigned
        self._problems.pop(name, None)

    def complain(self, name: str, problem: str) -> None:
        """It has not cosigned, and this is why."""
        self._problems[name] = clean_reason(problem)

    def status(self) -> tuple[WitnessStatus, ...]:
        """How each is, in the order of the configuration."""
        return tuple(self._status(name) for name in self.keys)

    def _status(self, name: str) -> WitnessStatus:
        one = self.cosigned.get(name)
        return WitnessStatus(
            name, None if one is None else one.size, None if one is None else iso(one.time), self._problems.get(name)
        )  # fmt: skip


def read(connection: OpenTransaction) -> dict[str, Cosigned]:
    """The last cosignature of each witness. Raises DatabaseGone."""
    row = connection.execute(_READ, (META,)).fetchone()
    try:
        return {} if row is None else msgspec.json.decode(row[0], type=dict[str, Cosigned])
    except msgspec.MsgspecError:
        raise DatabaseGone("what is kept of witnesses makes no sense") from None


def keep(connection: OpenTransaction, name: str, fresh: Cosigned) -> Cosigned:
    """Keep what a witness has cosigned, unless it has cosigned more by the same key; inside the transaction that is
    open. Return its last cosignature. Raises DatabaseGone."""
    kept = read(connection)
    before = kept.get(name)
    if before is not None and before.key == fresh.key and before.size > fresh.size:
        return before
    connection.execute(_WRITE, (META, msgspec.json.encode(kept | {name: fresh}).decode()))
    return fresh
