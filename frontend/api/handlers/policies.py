"""The data of the policy in force: who may call what, and who needs no approval."""

import msgspec

from contract.policy import Acl, Allowlisted, ExplainedCall, PrincipalAcl, PrincipalView
from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.answers import answer_of
from frontend.contract.policy import MAX_ACTIONS, AllowlistPair, CallToExplain, PrincipalActions
from frontend.errors import GateError
from frontend.policy.acl import acl_view, principal_view
from frontend.policy.data import PolicyData, is_action, is_principal
from frontend.policy.edit import WILDCARD
from frontend.services import Services

CHANGING = (
    "invalid_input", "policy_changed_on_disk", "policy_refused", "policy_not_writable", "policy_engine_unavailable",
    "policy_engine_timeout", "evidence_store_unavailable",
)  # fmt: skip
"""Codes of every change of the data."""


@codes("policy_engine_unavailable")
async def show(services: Services, _operator: OperatorCaller) -> Acl:
    """Show who may do what, and who needs no approval for it."""
    await services.configuration.use_newest_policy()
    return answer_of(Acl, acl_view(services.authority.data))


@codes("policy_engine_unavailable")
async def show_principal(services: Services, _operator: OperatorCaller, principal: str) -> PrincipalView:
    """Show what one principal may do, by risk."""
    await services.configuration.use_newest_policy()
    levels = {action.action_id: action.risk_level for action in services.registry.actions}
    view = principal_view(services.authority.data, principal, levels)
    if view is None:
        raise GateError("principal_not_found")
    return answer_of(PrincipalView, view)


@codes(
    "action_not_found", "invalid_input", "policy_engine_unavailable", "policy_engine_timeout",
    "budget_store_unavailable", "clock_error",
)  # fmt: skip
async def explain(services: Services, form: CallToExplain, operator: OperatorCaller) -> ExplainedCall:
    """Say what would come of a call: which rule of the policy in force decides, and why.

    It executes, counts and writes nothing. The answer says what it supposes of a real call.
    """
    if not (is_principal(form.principal) and is_action(form.action_id)) or form.principal == WILDCARD:
        raise GateError("invalid_input", message="principal or action_id: not such an id")
    explanation = await services.explaining.explain(
        form.principal, form.action_id, form.request, form.calls_remaining, (f"operator:{operator.name}",) * 2
    )
    return msgspec.convert(
        {
            "principal": form.principal, "action_id": form.action_id, "decision": explanation.decision,
            "error_code": explanation.code, "rule": explanation.rule, "reason": explanation.reason,
            "assumed": explanation.assumed, "policy_version": explanation.policy_version,
            "request_hash": explanation.request_hash,
        },
        ExplainedCall,
    )  # fmt: skip


@codes("unknown_action", *CHANGING)
async def grant(services: Services, form: PrincipalActions, operator: OperatorCaller) -> PrincipalAcl:
    """Let a principal call these actions too, from the next call on. Its sinks follow from its actions."""
    principal, actions = _principal_and_actions(form)
    return _entry(await services.authority.grant(principal, actions, operator), principal)


@codes("unknown_action", "principal_not_found", *CHANGING)
async def revoke(services: Services, form: PrincipalActions, operator: OperatorCaller) -> PrincipalAcl:
    """Take these actions from a principal, from the next call on; its entry goes with the last one.

    A principal without an entry may do what the entry `*` allows, if there is one. Calls that are held by
    what was taken expire.
    """
    principal, actions = _principal_and_actions(form)
    data = await services.authority.revoke(principal, actions, operator)
    await services.revocation.end_lost_rights()
    return _entry(data, principal)


@codes("action_not_found", *CHANGING)
async def allow(services: Services, form: AllowlistPair, operator: OperatorCaller) -> Allowlisted:
    """Spare an agent the approval of an action, from the next call on. Every other rule still binds."""
    _check_pair(form)
    data = await services.authority.allow(form.action_id, form.agent_id, operator)
    return Allowlisted(action_id=form.action_id, agent_id=form.agent_id, policy_version=data.policy_version)


@codes("allowlist_entry_not_found", *CHANGING)
async def disallow(services: Services, form: AllowlistPair, operator: OperatorCaller) -> Allowlisted:
    """Ask for approval again, from the next call on. Earlier calls are not undone."""
    _check_pair(form)
    data = await services.authority.disallow(form.action_id, form.agent_id, operator)
    return Allowlisted(action_id=form.action_id, agent_id=form.agent_id, policy_version=data.policy_version)


def _principal_and_actions(form: PrincipalActions) -> tuple[str, tuple[str, ...]]:
    if not is_principal(form.principal):
        raise _refuse("principal: letters, digits and . _ : @ -, at most 256, beginning with a letter or digit; or *")
    if not 1 <= len(form.actions) <= MAX_ACTIONS:
        raise _refuse(f"actions: 1 to {MAX_ACTIONS} action ids")
    if not all(map(is_action, form.actions)):
        raise _refuse("actions: each must be an action id")
    return form.principal, tuple(dict.fromkeys(form.actions))


def _check_pair(form: AllowlistPair) -> None:
    if not is_action(form.action_id):
        raise _refuse("action_id: letters, digits and . _ -, at most 256, beginning with a letter or digit")
    if not is_principal(form.agent_id) or form.agent_id == WILDCARD:
        raise _refuse("agent_id: letters, digits and . _ : @ -, at most 256, beginning with a letter or digit")


def _entry(data: PolicyData, principal: str) -> PrincipalAcl:
    entry = data.acl.get(principal)
    return PrincipalAcl(
        principal=principal,
        actions=() if entry is None else tuple(sorted(entry.actions)),
        sinks=() if entry is None else tuple(sorted(entry.sinks)),
        inherits_wildcard=WILDCARD in data.acl if entry is None else entry.inherits_wildcard,
        policy_version=data.policy_version,
    )


def _refuse(message: str) -> GateError:
    return GateError("invalid_input", message=message)
