"""Proofs that were used, in the memory of the one notary that uses them, of a store in the ledger.

A unit adds its proofs once it is committed. After a unit of which it is unknown whether it was, all are read again.
"""

from collections.abc import Iterable, Sequence

from notary.database import OpenTransaction
from notary.ledger.page_ring import RingEntry
from notary.store.contract import Store
from notary.store.proofs import REPLAY_SECONDS, ProofRow, read, row_of


class KnownProofs:
    """The proofs that are remembered. Changes after a commit only."""

    def __init__(self, rows: Iterable[ProofRow]) -> None:
        self._ends = {key: expires_at for _, key, expires_at in rows}

    def __len__(self) -> int:
        return len(self._ends)

    def is_used(self, key: str, now: float) -> bool:
        """True for a proof that was used and is remembered still."""
        return self._ends.get(key, 0.0) > now

    def add(self, rows: Iterable[ProofRow]) -> None:
        """Remember these, which are used now, and forget those that are over."""
        ends, now = self._ends, 0.0
        for _, key, expires_at in rows:
            ends[key], now = expires_at, expires_at - REPLAY_SECONDS
        while (oldest := next(iter(ends), None)) is not None and ends[oldest] <= now:
            del ends[oldest]


class UnitProofs:
    """The proofs of one unit, beside those that are known."""

    def __init__(
        self, known: KnownProofs | None, connection: OpenTransaction, entries: Sequence[RingEntry], store: Store
    ) -> None:
        """`known` None: all that were used before are read once they are asked for, from the table and from `entries`
        that are not settled. A store elsewhere knows its own."""
        self._known = known
        self._connection = connection
        self._entries = entries
        self._is_in_ledger = store.is_in_ledger
        self._used: dict[str, ProofRow] = {}

    def is_used(self, key: str, now: float) -> bool:
        """True for a proof that this unit has used, or one before it as far as the ledger tells."""
        if key in self._used:
            return True
        if not self._is_in_ledger:
            return False
        if self._known is None:
            unsettled = [row for entry in self._entries for row in entry.proofs]
            self._known = KnownProofs(read(self._connection) + unsettled)
        return self._known.is_used(key, now)

    def use(self, key: str, now: float) -> ProofRow:
        """The row of a proof that this unit uses."""
        row = self._used[key] = row_of(key, now)
        return row

    def committed(self) -> KnownProofs | None:
        """All that are used now; None if they have to be read."""
        if self._known is not None:
            self._known.add(self._used.values())
        return self._known
