"""POST /v1/actions/{action_id}/execute: the pipeline's door."""

from typing import Annotated, Any

from contract.execution import ExecutionResult, PendingApproval
from frontend.calls.executed import ExecutedCall
from frontend.contract.annotations import ReadsBody, StatusCode, WrittenAs, codes
from frontend.errors import REPLAYED
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.services import Services

CALL = (
    "draining", "overloaded", "ledger_full", "policy_denied", "action_not_registered", "action_digest_mismatch",
    "budget_exhausted", "budget_session_not_found", "action_not_found", "body_too_large", "schema_violation",
    "too_many_pending_approvals", "evidence_persistence_failed", "internal_error", "action_execution_failed",
    "policy_engine_unavailable", "policy_engine_timeout", "budget_store_unavailable", "clock_error",
    "secrets_unavailable", "invalid_idempotency_key", "idempotency_key_reused", "too_many_idempotency_keys",
    "call_in_progress", "already_executed", "approval_expired", "outcome_unknown",
)  # fmt: skip


@codes(*CALL)
async def execute(
    services: Services, request: Annotated[Request, ReadsBody(Any)], action_id: str
) -> Annotated[Answer, WrittenAs(ExecutionResult)] | Annotated[PendingApproval, StatusCode(202)]:
    """Call an action.

    200 with the result, its receipt durable; 202 when a person has to approve the call first. The body is what the
    action's request schema asks for; a missing one is `{}`. The same call again while it is held is the same hold.
    Under the same `Idempotency-Key` it is answered with the outcome of the first, and runs at most once.
    """
    outcome = await services.pipeline.call(request, action_id)
    if isinstance(outcome, ExecutedCall) and not outcome.succeeded:
        raise outcome.failure()
    status = 200 if isinstance(outcome, ExecutedCall) else 202
    return json_answer(status, outcome.body(), (REPLAYED,) if outcome.is_replayed else ())
