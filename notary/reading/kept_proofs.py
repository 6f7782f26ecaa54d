"""The part of a bundle that proves kept values: value and salt of each commitment, or the event that erased it."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from contract.evidence import KeptProof
from notary.database import OpenTransaction
from notary.ledger.kept_values import StoredValue, kept_names, stored_values


class KeptPart(NamedTuple):
    """The values that are there, and the numbers of the events that erased the others."""

    values: tuple[KeptProof, ...] = ()
    erased_by: tuple[int, ...] = ()


def kept_part(connection: OpenTransaction, event: bytes) -> KeptPart:
    """The rows of an event, given its stored bytes; nothing for one that commits to no value."""
    names = kept_names(event)
    if not names.kept:
        return KeptPart()
    rows = stored_values(connection, names.key)
    return KeptPart(_values(rows), tuple(sorted({row.erased_by for row in rows if row.erased_by is not None})))


def _values(rows: Sequence[StoredValue]) -> tuple[KeptProof, ...]:
    return tuple(
        KeptProof(pointer=row.pointer, value=msgspec.json.decode(row.value), salt=_b64url(row.salt))
        for row in rows
        if row.value is not None and row.salt is not None
    )


def _b64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
