"""Approvals that were claimed and not settled: by a front that died, or by this one while the notary failed.

The ledger decides how each of them ends. Recovery executes no plan. Guarantees that of several fronts one ends an
approval, that its call is given back only when nothing was dispatched, and that its end is in evidence.
"""

import msgspec

from frontend.calls.approvals.record import call_record_of, readable_body
from frontend.calls.approvals.transitions import Transitions
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryUnavailable
from frontend.telemetry.logs import log
from frontend.telemetry.weakened import Weakened
from ipc.approvals import APPROVED, FAILED
from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import ACTION_CALL
from ipc.evidence.records import EventQuery
from ipc.operations.evidence import QueryEvents, TraceOfApproval
from ipc.operations.holds import OrphanedHolds


class _SeenCalls(msgspec.Struct):
    event_type: str
    decision: str | None = None


class _End(msgspec.Struct, frozen=True):
    """How an approval ends. `is_told`: an event says so already; `is_spent`: something was dispatched."""

    state: str
    outcome: dict[str, str | None]
    is_told: bool
    is_spent: bool


class Recovery(msgspec.Struct, frozen=True):
    """Ends what no task is settling. Methods raise NotaryUnavailable, NotaryRefused and GateError."""

    notary: NotaryClient
    weakened: Weakened
    transitions: Transitions

    async def at_start(self, live_fronts: tuple[str, ...]) -> None:
        """End approvals that a front claimed and did not live to settle."""
        while await self._end_all(await self.notary.ask(OrphanedHolds(live_fronts))):
            pass

    async def of_own(self) -> None:
        """End approvals of this front that no task of it is settling any more."""
        await self._end_all(await self.transitions.unresolved_claims())

    async def _end_all(self, approvals: list[ApprovalRecord]) -> bool:
        """True if any has ended by this call. The others are ended first; then the first error is raised. Once the
        notary does not answer, the rest is left."""
        has_ended = False
        problem: Exception | None = None
        for approval in approvals:
            try:
                has_ended |= await self._finish(approval, await self._end_of(approval))
            except NotaryUnavailable:
                raise
            except Exception as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return has_ended

    async def _end_of(self, approval: ApprovalRecord) -> _End:
        trace = await self.notary.ask(TraceOfApproval(approval.approval_id))
        if trace.receipt_id is not None:
            return _End(APPROVED, {"receipt_id": trace.receipt_id}, is_told=True, is_spent=True)
        is_told = await self._is_told(approval)
        if trace.has_intent:
            # Dispatched, and its effect is unknown: never executed again, shown as an unresolved intent.
            return _End(FAILED, {"error_code": "evidence_persistence_failed"}, is_told=is_told, is_spent=True)
        return _End(FAILED, {"error_code": "interrupted"}, is_told=is_told, is_spent=False)

    async def _is_told(self, approval: ApprovalRecord) -> bool:
        """An event says already how the call ended."""
        body = readable_body(approval)
        if body is None:
            return False
        found = await self.notary.ask(QueryEvents(EventQuery(trace_id=body.plan.trace_id)))
        seen = [one for event in found.events if (one := _seen(event)) is not None]
        return any(one.event_type == ACTION_CALL and one.decision != "pending_approval" for one in seen)

    async def _finish(self, approval: ApprovalRecord, end: _End) -> bool:
        record, body = call_record_of(approval, self.weakened), readable_body(approval)
        event = None
        if not end.is_told:
            event = record.event(
                "error", approval_id=approval.approval_id, session_id=approval.session_id,
                error_code=end.outcome["error_code"], reason="left claimed by a front that did not settle it",
            )  # fmt: skip
        refunds = not end.is_spent and body is not None and body.has_budget
        if not await self.transitions.end(
            approval, end.state, event=event, refunds=refunds, kept=record.kept, **end.outcome
        ):
            return False
        log.warning(
            "an approval was left claimed", approval_id=approval.approval_id, holder=approval.holder, ends=end.state
        )
        return True


def _seen(event: bytes) -> _SeenCalls | None:
    try:
        return msgspec.json.decode(event, type=_SeenCalls)
    except ValueError:  # the ledger was changed: `verify` reports that, and it is no reason not to start
        return None
