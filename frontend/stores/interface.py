"""The key-value store: one interface, one contract suite (tests/frontend/stores), any number of backends.

Holds the replay cache, budgets, approvals and the revocation epoch. Whatever must be atomic is one operation here.
Every operation raises StoreUnavailable when the store cannot be asked or does not answer in time; callers turn that
into the 503 of their step, never into an allow. Times are whole or fractional seconds since the Unix epoch, passed in
by the caller, so that one clock (frontend/clock.py) rules everywhere.
"""

from typing import Literal, Protocol

import msgspec


class StoreUnavailable(Exception):
    """The store is gone, slow or lying. Nothing may be concluded."""


class CheckIn(msgspec.Struct, frozen=True):
    """Outcome of `check_in`: one visit of the store per authenticated request."""

    is_fresh: bool
    """False: this proof has been seen before."""
    epoch: int
    """Revocation epoch in force."""


class Budget(msgspec.Struct, frozen=True):
    """Outcome of a look at, or a debit of, a session's budget.

    `found` False: no such session. `debited` False with `found`: nothing left. `remaining` counts after the operation.
    """

    found: bool
    debited: bool
    remaining: int


class ApprovalRecord(msgspec.Struct, frozen=True):
    """One approval. `state` moves only by `approval_move`; `body` (plan and context) never changes."""

    approval_id: str
    session_id: str
    action_id: str
    request_hash: str
    state: str
    created_at: float
    expires_at: float
    body: str
    """JSON text, opaque to the store."""
    holder: str | None = None
    """Id of the front that claimed it."""
    outcome: str = "{}"
    """JSON text: claimed_by, claimed_at, completed_at, receipt_id, deny_reason, error_code."""


class Hold(msgspec.Struct, frozen=True):
    """Outcome of `approval_hold`. existing: the same call is pending already and `record` is that one."""

    kind: Literal["stored", "existing", "too_many"]
    record: ApprovalRecord | None
    free_at: float | None = None
    """too_many: when the first of those that are pending expires; a decision of an operator may come before."""


class Store(Protocol):
    """What a backend implements."""

    async def check_in(self, proof_key: str, expires_at: float, now: float) -> CheckIn:
        """Record a proof's key once (until `expires_at`) and read the epoch, atomically and durably."""

    async def epoch(self) -> int:
        """Revocation epoch in force; 0 in a new store."""

    async def raise_epoch(self, above: int = 0) -> tuple[int, int]:
        """(previous, current) after adding one to the higher of the epoch and `above`, durably."""

    async def budget_open(self, session_id: str, max_calls: int, expires_at: float) -> None:
        """Create the counter of a new session. One that is there stays as it is."""

    async def budget_read(self, session_id: str) -> Budget:
        """Look without debiting."""

    async def budget_debit(self, session_id: str) -> Budget:
        """Take one call, atomically."""

    async def budget_refund(self, session_id: str) -> Budget:
        """Give one call back, never above the session's max_calls; a session that is gone is not an error."""

    async def approval_hold(self, record: ApprovalRecord, limit: int, now: float) -> Hold:
        """Store a pending approval, unless the same (session, action, request_hash) is pending and unexpired, or the
        session has `limit` pending ones."""

    async def approval_pending(
        self, session_id: str, action_id: str, request_hash: str, now: float
    ) -> ApprovalRecord | None:
        """The pending, unexpired approval of this very call, or None."""

    async def approval_get(self, approval_id: str) -> ApprovalRecord | None:
        """As stored; a pending one whose time is over still says pending here."""

    async def approval_list(self, states: tuple[str, ...] | None, limit: int) -> list[ApprovalRecord]:
        """Newest first."""

    async def approval_move(
        self, approval_id: str, from_state: str, to_state: str, *, outcome: str, holder: str | None,
        unexpired_at: float | None = None,
    ) -> ApprovalRecord | None:  # fmt: skip
        """Compare and swap: the record after the move, or None when it is not in `from_state` (or has expired at
        `unexpired_at`). Exactly one of any number of concurrent callers gets the record. `outcome` and `holder` take
        the place of those that were there."""

    async def approval_expire(self, now: float, limit: int) -> list[ApprovalRecord]:
        """Move at most `limit` pending ones whose time is over to expired, oldest first; those moved by this call."""

    async def approval_claimed_by_others(self, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
        """Claimed approvals whose holder is not alive."""

    async def pending_count(self, now: float) -> int:
        """Approvals that wait for an operator."""

    async def pending_oldest(self, now: float) -> float | None:
        """When the one that has waited longest was created; None when none waits."""

    async def sweep(self, now: float, keep_ended_seconds: float) -> None:
        """Forget proofs and budgets whose time is over, and ended approvals `keep_ended_seconds` after theirs (their
        `expires_at`). A little at a time: what is left after a bounded number of rounds is left for the next sweep."""

    async def close(self) -> None:
        """Finish what is queued and release the store."""
