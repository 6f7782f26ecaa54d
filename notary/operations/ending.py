"""The end of an approval: it moves, and is kept with its request and plan for people who look into it later."""

import msgspec

from ipc.backends.store import ApprovalRecord
from notary.units.transaction import Transaction


def end_hold(unit: Transaction, approval: ApprovalRecord, state: str, outcome: str) -> ApprovalRecord | None:
    """The approval as it has ended, without its request; None: it is not in the state that it was read in."""
    ended = unit.store.move_hold(approval.approval_id, approval.state, state, outcome=outcome)
    if ended is None:
        return None
    unit.store.keep_ended(msgspec.structs.replace(ended, body=approval.body), unit.now)
    unit.erase()
    return ended
