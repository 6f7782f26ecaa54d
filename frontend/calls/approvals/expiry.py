"""Holds that no operator decided in time, or before everything was revoked: expired, with the event, and the call given
back, all at once."""

import msgspec

from frontend.calls.approvals.record import call_record_of, readable_body
from frontend.calls.approvals.transitions import Transitions
from frontend.clock import TimeSource
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.telemetry.weakened import Weakened
from ipc.backends.store import NO_EPOCH, RIGHT_REVOKED, ApprovalRecord
from ipc.evidence.events import APPROVAL_EXPIRED
from ipc.operations.holds import DueHolds

TIME_OVER, REVOKED = "five minutes without a decision", "everything of before was revoked"
SESSION_OVER = "its session was revoked"
_REASONS = {NO_EPOCH: SESSION_OVER, RIGHT_REVOKED: "right_revoked"}
AT_ONCE = 10
"""Holds of one look: a plan may be large."""


class Expiry(msgspec.Struct, frozen=True):
    """Ends what is over."""

    clock: TimeSource
    notary: NotaryClient
    transitions: Transitions
    weakened: Weakened

    async def expire(self) -> None:
        """One round. Raises NotaryUnavailable, NotaryRefused, GateError: the next round goes on where this ended. One
        that can't be ended keeps those that came with it from nothing."""
        has_moved = True
        while has_moved and (due := await self.notary.ask(DueHolds(AT_ONCE))):
            has_moved, problem = False, None
            for approval in due:
                try:
                    has_moved |= await self._end(approval)
                except GateError as error:
                    problem = error
            if problem is not None:
                raise problem

    async def _end(self, approval: ApprovalRecord) -> bool:
        record, body = call_record_of(approval, self.weakened), readable_body(approval)
        revoked = _REASONS.get(approval.epoch, REVOKED)
        event = record.event(
            "deny", event_type=APPROVAL_EXPIRED, approval_id=approval.approval_id,
            session_id=approval.session_id, reason=TIME_OVER if approval.expires_at <= self.clock.now() else revoked,
        )  # fmt: skip
        has_moved = await self.transitions.expire(
            approval, event, refunds=body is not None and body.has_budget, kept=record.kept
        )  # fmt: skip
        if has_moved:
            record.say("deny", "approval_expired")
        return has_moved
