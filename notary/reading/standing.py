"""Whether the standing approval that a receipt names was signed for the receipt's call.

The signed text stands in the receipt, and names the ledger that it is for. A ledger does not know which operator's key
it is: `gatectl verify` compares it with those that it is given.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec import UNSET

from ipc.keys.signed_approvals import SignatureRefused
from ipc.process.clock import parse_iso
from notary.ledger.receipts import LedgerReceipt
from notary.signing.standing_texts import checked_standing

MOST_NAMES: Final = 64
"""Names of ledgers that are remembered of one: it has one, and another one after each change of its settings."""


class NamedAt(NamedTuple):
    """The first event whose receipt has a standing approval for some ledger. `leaf`: its place in the tree."""

    event_id: str
    seq: int
    leaf: int | None


class LedgerNames:
    """The names for which the standing approvals of one ledger were signed: when one was added, and in receipts."""

    def __init__(self) -> None:
        self._added: set[str] = set()
        self._used: dict[str, NamedAt] = {}

    def add(self, signature: str | None) -> None:
        """An event has added this one: the notary held it against the name of that time."""
        if len(self._added) < MOST_NAMES:
            self._added.add(_name_in(signature))

    def use(self, receipt: LedgerReceipt, at: NamedAt) -> bool:
        """A receipt has one. False where there are too many names."""
        if receipt.standing_signature is not UNSET:
            self._used.setdefault(_name_in(receipt.standing_signature), at)
        return len(self._used) <= MOST_NAMES

    def foreign(self, names: Collection[str], committed: int) -> NamedAt | None:
        """The first event whose receipt has one for another ledger. `names`: of checkpoints and of their keys;
        `committed`: leaves of the newest checkpoint, behind which a name may be newer than all of these."""
        known = self._added.union(names)
        wrong = (at for name, at in self._used.items() if name not in known)
        return next((at for at in wrong if at.leaf is not None and at.leaf < committed), None)


def problem_of_standing(receipt: LedgerReceipt, standing_id: str | None) -> str | None:
    """Why the receipt's standing approval does not let its call run; None where it does, and for a receipt without one.

    `standing_id`: the one that its event names.
    """
    named = None if receipt.standing_id is UNSET else receipt.standing_id
    if named != standing_id:
        return f"names the standing approval {named}, and its event {standing_id}"
    if named is None and receipt.standing_signature is UNSET:
        return None
    try:
        signed = checked_standing(receipt.standing_signature or "")
        started = parse_iso(receipt.started_at)
    except (SignatureRefused, ValueError):
        return "has a standing approval that no key has signed"
    terms = signed.terms
    if (terms.standing_id, terms.action_id, terms.principal) != (named, receipt.action_id, receipt.principal):
        return "has a standing approval of other calls"
    return None if started < terms.until else "has a standing approval whose time was over"


def _name_in(signature: str | None) -> str:
    try:
        return checked_standing(signature or "").terms.aud[1]
    except SignatureRefused:
        return ""
