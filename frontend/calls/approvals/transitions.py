"""Transitions of an approval by this front: claiming it for one operator, ending what was claimed, expiring it.

The notary compares and swaps, and writes the event of a transition with it, so that the front that gets the record is
the only one to act on it and no crash parts the two. Errors come in the interface's words.
"""

import msgspec
from msgspec.structs import replace

from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.record import encode, outcome_of
from frontend.calls.approvals.states import check_move
from frontend.clock import ClockError, TimeSource
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import ENDS, Metrics
from ipc.approvals import CLAIMED, EXPIRED, PENDING, DecisionOutcome
from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import AuditEvent
from ipc.evidence.kept_values import KeptValues
from ipc.operations.holds import MoveHold, UnsettledHolds


class Transitions(msgspec.Struct, frozen=True):
    """Moves approvals of this front. `at_work` has the ids that tasks settle now, once for each task."""

    clock: TimeSource
    notary: NotaryClient
    front_id: str
    metrics: Metrics
    at_work: list[str] = msgspec.field(default_factory=list)

    async def claim(
        self, approval: ApprovalRecord, operator: OperatorCaller, event: AuditEvent | None, signature: str | None
    ) -> ApprovalRecord:
        """The record as it is claimed, for one caller alone, with the event of that and the operator's signature.

        Raises GateError approval_not_found, approval_store_unavailable.
        """
        now = self.clock.now()
        outcome = encode(
            DecisionOutcome(claimed_by=operator.name, claimed_at=self.clock.iso(now), approval_signature=signature)
        )  # fmt: skip
        record = await self._move(
            MoveHold(approval.approval_id, PENDING, CLAIMED, outcome, self.front_id, event=event)
        )  # fmt: skip
        if record is None:
            raise GateError("approval_not_found")
        return replace(record, body=approval.body)  # which does not change while it waits, and is not answered again

    async def end(
        self, record: ApprovalRecord, state: str, *, event: AuditEvent | None, refunds: bool,
        kept: KeptValues | None = None,
        **outcome: str | None,
    ) -> bool:  # fmt: skip
        """Move a claimed approval on, with the event of that, and give its call back; True when it was this call that
        did. Raises GateError approval_store_unavailable: then recovery ends it."""
        before = outcome_of(record)
        after = DecisionOutcome(
            claimed_by=before.claimed_by, claimed_at=before.claimed_at, completed_at=self._completed_at(),
            approval_signature=before.approval_signature, approvals=before.approvals, **outcome,
        )  # fmt: skip
        moved = await self._move(
            MoveHold(record.approval_id, CLAIMED, state, encode(after), event=event, refunds=refunds, kept=kept)
        )  # fmt: skip
        if moved is None:
            log.warning("an approval was ended by another task", approval_id=record.approval_id, state=state)
        return moved is not None

    async def expire(
        self, record: ApprovalRecord, event: AuditEvent, *, refunds: bool, kept: KeptValues | None = None
    ) -> bool:
        """End a hold that no operator decided; True when it was this call that did."""
        asked = MoveHold(record.approval_id, PENDING, EXPIRED, record.outcome, event=event, refunds=refunds, kept=kept)
        return await self._move(asked) is not None

    async def unresolved_claims(self) -> list[ApprovalRecord]:
        """Claimed by this front and settled by no task of it: the notary failed in between."""
        left = await self.notary.ask(UnsettledHolds(tuple(self.at_work)))
        return [one for one in left if one.approval_id not in self.at_work]  # a task may have begun meanwhile

    async def _move(self, asked: MoveHold) -> ApprovalRecord | None:
        check_move(asked.from_state, asked.to_state)
        with notary_errors_as("approval_store_unavailable"):
            moved = await self.notary.ask(asked)
        if moved is not None and moved.state in ENDS:
            self.metrics.approvals.add(moved.state)
        return moved

    def _completed_at(self) -> str | None:
        try:
            return self.clock.iso()
        except ClockError:
            return None
