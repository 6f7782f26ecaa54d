"""The write-ahead log of a SQLite file as its index tells it (sqlite.org/walformat.html)."""

import struct
from pathlib import Path
from typing import NamedTuple

_MX_FRAME, _BACKFILL = 16, 96


class WalState(NamedTuple):
    """Pages that are committed, and how many of them are in the file."""

    written: int
    copied: int


def wal_state(ledger: Path) -> WalState:
    """The log of this file now."""
    index = ledger.with_name(f"{ledger.name}-shm").read_bytes()
    return WalState(*(struct.unpack_from("=I", index, place)[0] for place in (_MX_FRAME, _BACKFILL)))


def is_copied(ledger: Path) -> bool:
    """True if the file has all that is committed, and something is."""
    state = wal_state(ledger)
    return state.written == state.copied > 0
