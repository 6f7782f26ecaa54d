"""Moves of an approval by this front: claiming it for one operator, ending what was claimed.

The store compares and swaps, so that whoever gets the record is the only one to act on it. Errors come in the
interface's words; that a hold could not be ended is said by the answer, since by then its evidence is written.
"""

from dataclasses import dataclass, field

from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.record import Outcome, encode, outcome_of
from frontend.calls.approvals.states import CLAIMED, PENDING, check_move
from frontend.clock import Clock, ClockError
from frontend.errors import GateError
from frontend.stores.interface import ApprovalRecord, Store, StoreUnavailable
from frontend.telemetry.logs import log


@dataclass(frozen=True, slots=True)
class Transitions:
    """What this front does to approvals. `at_work` holds, once for each task, those that one is settling now."""

    clock: Clock
    store: Store
    front_id: str
    at_work: list[str] = field(default_factory=list)

    async def claim(self, approval_id: str, operator: OperatorCaller) -> ApprovalRecord:
        """The record, for one caller alone. Raises GateError approval_not_found, approval_store_unavailable."""
        now = self.clock.now()
        outcome = encode(Outcome(claimed_by=operator.name, claimed_at=self.clock.iso(now)))
        check_move(PENDING, CLAIMED)
        try:
            record = await self.store.approval_move(
                approval_id, PENDING, CLAIMED, outcome=outcome, holder=self.front_id, unexpired_at=now
            )
        except StoreUnavailable as error:
            raise GateError("approval_store_unavailable", cause=str(error)) from None
        if record is None:
            raise GateError("approval_not_found")
        return record

    async def end(self, record: ApprovalRecord, state: str, **found: str | None) -> bool:
        """Move a claimed approval on; True when it was this call that did."""
        check_move(CLAIMED, state)
        before = outcome_of(record)
        outcome = Outcome(
            claimed_by=before.claimed_by, claimed_at=before.claimed_at, completed_at=self._completed_at(), **found
        )
        try:
            moved = await self.store.approval_move(
                record.approval_id, CLAIMED, state, outcome=encode(outcome), holder=None
            )
        except StoreUnavailable as error:
            # The evidence is in the ledger; frontend/calls/approvals/recovery.py finds the claim and ends it by that.
            log.error("an approval could not be ended", approval_id=record.approval_id, cause=str(error))
            return False
        if moved is None:
            log.warning("an approval was ended by somebody else", approval_id=record.approval_id, state=state)
        return moved is not None

    async def unresolved_claims(self) -> list[ApprovalRecord]:
        """Claimed by this front and settled by no task of it: the store failed in between. Raises StoreUnavailable."""
        claimed = await self.store.approval_claimed_by_others(())
        return [one for one in claimed if one.holder == self.front_id and one.approval_id not in self.at_work]

    def _completed_at(self) -> str | None:
        try:
            return self.clock.iso()
        except ClockError:
            return None
