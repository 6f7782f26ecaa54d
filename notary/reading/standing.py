"""Whether the standing approval that a receipt names was signed for the receipt's call.

The signed text stands in the receipt, so that nothing else of the ledger is needed. A ledger does not know which
operator's key it is: `gatectl verify` compares it with those that it is given.
"""

from msgspec import UNSET

from ipc.keys.signed_approvals import SignatureRefused
from ipc.keys.standing_approvals import read_standing
from ipc.process.clock import parse_iso
from notary.ledger.receipts import LedgerReceipt
from notary.signing.operators import check_signature


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
        signed = read_standing(receipt.standing_signature or "")
        check_signature(signed.text)
        started = parse_iso(receipt.started_at)
    except (SignatureRefused, ValueError):
        return "has a standing approval that no key has signed"
    terms = signed.terms
    if (terms.standing_id, terms.action_id, terms.principal) != (named, receipt.action_id, receipt.principal):
        return "has a standing approval of other calls"
    return None if started < terms.until else "has a standing approval whose time was over"
