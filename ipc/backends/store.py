"""Data of the store as front and notary exchange them: budgets and approvals.

Times are whole or fractional seconds since the Unix epoch.
"""

from typing import Final

import msgspec

STORE_PARTS: Final = frozenset({"store", "budget", "approvals"})
"""Parts of the notary that lie in the key-value store, as its answers name them."""
NO_EPOCH: Final = -1
"""Epoch of a hold whose session was revoked: it has ended in every epoch."""

RIGHT_REVOKED: Final = -2
"""Epoch of a hold whose principal has lost the right to its action."""


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
    """JSON text. For an ended approval only its `remains_of` (ipc/approvals.py). Empty in answers of operations that
    write, since these answers are kept for a while."""
    holder: str | None = None
    """Id of the front that claimed it."""
    outcome: str = "{}"
    """JSON text: claimed_by, claimed_at, completed_at, receipt_id, deny_reason, error_code,
    approval_signature."""
    principal: str = ""
    """The principal of the call."""
    epoch: int = 0
    """The epoch of the plan: in another one the approval can't be claimed."""
