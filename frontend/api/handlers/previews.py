"""Previews of calls: POST /v1/actions/{id}/preview of agents, POST /v1/admin/actions/{id}/preview of operators."""

from typing import Annotated, Any

from contract.previews import CallPreview
from frontend.auth.authentication import Caller, OperatorCaller
from frontend.contract.annotations import ReadsBody, codes
from frontend.contract.previews import CallToPreview
from frontend.errors import GateError
from frontend.http.requests import Request
from frontend.policy.data import is_principal
from frontend.services import Services

_PREVIEW = (
    "draining", "ledger_full", "policy_denied", "action_not_registered", "action_digest_mismatch", "action_not_found",
    "body_too_large", "schema_violation", "policy_engine_unavailable", "policy_engine_timeout",
    "budget_store_unavailable", "approval_store_unavailable", "evidence_store_unavailable", "clock_error",
)  # fmt: skip


@codes(*_PREVIEW, "budget_exhausted", "budget_session_not_found")
async def by_agent(
    services: Services, request: Annotated[Request, ReadsBody(Any)], caller: Caller, action_id: str
) -> CallPreview:
    """Show what would come of a call, without making it.

    For actions whose manifest says `preview: true`; others answer 403 `policy_denied`. A preview runs
    and holds nothing and debits no budget; the audit log has one event. A denied call is 200 with the decision `deny`.
    """
    return await services.previewing.for_agent(request, caller, action_id)


@codes(*_PREVIEW, "invalid_input")
async def by_operator(services: Services, form: CallToPreview, operator: OperatorCaller, action_id: str) -> CallPreview:
    """Show what would come of a call of this principal, without making it.

    Its lease is supposed, without a budget. A preview runs and holds nothing; the audit log has one event. A denied
    call is 200 with the decision `deny`.
    """
    if not is_principal(form.principal) or form.principal == "*":
        raise GateError("invalid_input", message="principal: not the name of one")
    return await services.previewing.for_operator(form, operator, action_id)
