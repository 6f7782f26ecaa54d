"""What the store part of the notary tells: proofs, budgets and approvals as front and notary both see them.

Times are whole or fractional seconds since the Unix epoch.
"""

from typing import Final

import msgspec

STORE_PARTS: Final = frozenset({"store", "budget", "approvals"})
"""Parts of the notary that lie in the key-value store, as its answers name them."""
NO_EPOCH: Final = -1
"""Of a hold whose session was revoked: it waits no more, whichever epoch is in force."""

RIGHT_REVOKED: Final = -2
"""The same of a hold whose principal has lost the right to its action."""


class Budget(msgspec.Struct, frozen=True):
    """Outcome of a look at, or a debit of, a session's budget.

    `found` False: no such session. `debited` False with `found`: nothing left. `remaining` counts after the operation.
    """

    found: bool
    debited: bool
    remaining: int


class ApprovalRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One approval. `state` moves only by a compare and swap; `body` (plan and context) is the same up to the end."""

    approval_id: str
    session_id: str
    action_id: str
    request_hash: str
    state: str
    created_at: float
    expires_at: float
    body: str
    """JSON text. Of an approval that has ended, what ipc/approvals.py `remains_of` leaves of it; empty in answers of
    operations that write, which are kept for a while."""
    holder: str | None = None
    """Id of the front that claimed it."""
    outcome: str = "{}"
    """JSON text: claimed_by, claimed_at, completed_at, receipt_id, deny_reason, error_code,
    approval_signature."""
    principal: str = ""
    """Who asks."""
    epoch: int = 0
    """Of the plan: in another one the approval can't be claimed."""
