"""Approvals: the agent's poll; the operator's list, detail, approve and deny."""

from typing import Annotated

from contract.approvals import ApprovalDetail, ApprovalGiven, ApprovalList, ApprovalPoll, Denied
from contract.execution import ExecutionResult
from frontend.auth.authentication import Caller, OperatorCaller
from frontend.auth.roles import ADMINISTRATORS
from frontend.calls.approvals.record import ShownHold, detailed, listed, polled
from frontend.calls.approvals.signatures import SignedRequest
from frontend.calls.approvals.states import state_at
from frontend.contract.annotations import StatusCode, codes
from frontend.contract.approvals import ApprovalDetailQuery, ApprovalQuery, ApproveQuery, ApproveRequest, DenyRequest
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.services import Services
from ipc.approvals import ENDED, EXPIRED, PENDING
from ipc.backends.store import ApprovalRecord
from ipc.caps import CapReading
from ipc.keys.signed_approvals import APPROVE, DENY
from ipc.operations.caps import ReadHeldCaps
from ipc.operations.holds import GetHold, ListHolds


@codes("approval_not_found", "approval_session_mismatch", "approval_store_unavailable", "clock_error")
async def poll(services: Services, caller: Caller, approval_id: str) -> ApprovalPoll:
    """Ask for the state of a held call of the caller's own session."""
    with notary_errors_as("approval_store_unavailable"):
        record = await services.notary.ask(GetHold(approval_id, with_body=False))
    if record is None:
        raise GateError("approval_not_found")
    if record.session_id != caller.lease.session_id:
        raise GateError("approval_session_mismatch")
    return polled(record, services.authentication.now())


@codes("approval_store_unavailable")
async def listing(services: Services, query: ApprovalQuery, _operator: OperatorCaller) -> ApprovalList:
    """List approvals, the newest first."""
    status, now = query.status, services.authentication.now()
    states = None if status is None else (status,)
    asked = ListHolds(
        states, query.limit, query.principal, query.action_id, query.before, in_turns=query.group is not None
    )  # fmt: skip
    with notary_errors_as("approval_store_unavailable"):
        page = await services.notary.ask(asked)
    # A pending record whose time is over waits for the sweep; to an operator it has expired already.
    items = tuple(listed(record, now) for record in page.approvals if status != PENDING or _is_live(record, now))
    return ApprovalList(approvals=items, count=len(items), total=page.total - len(page.approvals) + len(items))


@codes("approval_not_found", "plan_integrity", "approval_store_unavailable")
async def detail(
    services: Services, query: ApprovalDetailQuery, _operator: OperatorCaller, approval_id: str
) -> ApprovalDetail:
    """Show everything an operator must see before deciding; once it has ended, what was held and how it ended.

    404 when it has expired, unless `ended=true` asks for it.
    """
    record, now = await _get(services, approval_id), services.authentication.now()
    if query.ended is None and state_at(record.state, record.expires_at, now) == EXPIRED:
        raise GateError("approval_not_found")
    whole = await services.settlement.signatures.looks.whole(record)
    return detailed(record, now, whole, await _caps(services, record, whole, now))


@codes(
    "approval_not_found", "plan_integrity", "policy_denied", "evidence_persistence_failed", "action_execution_failed",
    "approval_store_unavailable", "overloaded", "unknown_action", "invalid_domain", "invalid_path", "too_many_rules",
    "learned_rules_unavailable", "allowlist_sync_failed", "draining", "ledger_full", "approval_signature_required",
    "invalid_approval_signature", "secrets_unavailable", "policy_engine_unavailable", "action_digest_mismatch",
    "own_request", "already_approved_by_you",
)  # fmt: skip
async def approve(
    services: Services, query: ApproveQuery, body: ApproveRequest, operator: OperatorCaller, approval_id: str
) -> ExecutionResult | Annotated[ApprovalGiven, StatusCode(202)]:
    """Let a held call run: execute the plan as it was stored.

    202 where the call needs other approvals, too. One operator wins; one who loses, or comes when it has expired, gets
    404. Goes on when the connection drops.
    A rule to learn must be one that the action may have; it is stored once the call has succeeded. To teach one needs
    the role `administer`, too. An operator whose `owner` is that of the caller may not approve its calls.
    """
    if query.learn_domain is not None or query.learn_path is not None:
        operator.require_role(ADMINISTRATORS)
    asked = SignedRequest(APPROVE, query.learn_domain, query.learn_path, signature=body.signature)
    with services.admission.enter(while_draining=True):
        approved = await services.settlement.approve(approval_id, operator, asked)
    if isinstance(approved, ApprovalGiven):
        return approved
    if not approved.executed.succeeded:
        raise approved.executed.failure()
    return approved.body()


@codes(
    "approval_not_found", "plan_integrity", "evidence_persistence_failed", "approval_store_unavailable",
    "approval_signature_required", "invalid_approval_signature",
)  # fmt: skip
async def deny(services: Services, body: DenyRequest, operator: OperatorCaller, approval_id: str) -> Denied:
    """End a held call without running it; the call goes back to the session's budget."""
    asked = SignedRequest(DENY, reason=body.reason, signature=body.signature)
    return await services.settlement.deny(approval_id, operator, asked)


async def _get(services: Services, approval_id: str) -> ApprovalRecord:
    with notary_errors_as("approval_store_unavailable"):
        record = await services.notary.ask(GetHold(approval_id))
    if record is None:
        raise GateError("approval_not_found")
    return record


async def _caps(services: Services, record: ApprovalRecord, whole: ShownHold, now: float) -> tuple[CapReading, ...]:
    """How the caps stand that a call which may still run counts for; a call without caps asks nothing."""
    if not whole.has_caps or state_at(record.state, record.expires_at, now) in ENDED:
        return ()
    with notary_errors_as("approval_store_unavailable"):
        return await services.notary.ask(ReadHeldCaps(record.approval_id))


def _is_live(record: ApprovalRecord, now: float) -> bool:
    return state_at(record.state, record.expires_at, now) == PENDING
