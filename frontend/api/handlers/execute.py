"""POST /v1/actions/{action_id}/execute: the pipeline's door."""

from typing import Annotated, Any

from contract.execution import ExecutionResult, PendingApproval
from frontend.calls.executed import ExecutedCall
from frontend.contract.annotations import ReadsBody, StatusCode, codes
from frontend.http.requests import Request
from frontend.services import Services

CALL = (
    "draining", "overloaded", "ledger_full", "policy_denied", "action_not_registered", "action_digest_mismatch",
    "budget_exhausted", "budget_session_not_found", "action_not_found", "body_too_large", "schema_violation",
    "too_many_pending_approvals", "evidence_persistence_failed", "internal_error", "action_execution_failed",
    "policy_engine_unavailable", "policy_engine_timeout", "budget_store_unavailable", "clock_error",
    "secrets_unavailable",
)  # fmt: skip


@codes(*CALL)
async def execute(
    services: Services, request: Annotated[Request, ReadsBody(Any)], action_id: str
) -> ExecutionResult | Annotated[PendingApproval, StatusCode(202)]:
    """Call an action.

    200 with the result, its receipt durable; 202 when a person has to approve the call first. The body is what the
    action's request schema asks for; a missing one is `{}`. The same call again while it is held is the same hold.
    """
    outcome = await services.pipeline.call(request, action_id)
    if isinstance(outcome, ExecutedCall) and not outcome.succeeded:
        raise outcome.failure()
    return outcome.body()
