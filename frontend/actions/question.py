"""The one place that makes a Question of a draft, for calls and for `gateway policy explain`."""

from msgspec import UnsetType

from frontend.actions.planning import Draft
from frontend.policy.question import Question


def question_of(drafted: Draft, calls_remaining: int | UnsetType | None) -> Question:
    """The input document of docs/policy.md. `calls_remaining` is the budget snapshot, None for a lease without budgets,
    UNSET if it has not been read."""
    action, plan = drafted.action, drafted.plan
    return Question(
        principal=plan.principal,
        owner=plan.owner,
        identity_method=drafted.origin.method,
        identity_issuer=drafted.origin.issuer,
        identity_subject=drafted.origin.subject,
        token_binding=drafted.origin.binding,
        action_id=plan.action_id,
        action_version=plan.action_version,
        action_risk_level=plan.risk_level,
        action_trust_verdict=action.trust_verdict,
        scopes=plan.scopes,
        required_scopes=action.required_scopes,
        requested_sinks=plan.sinks,
        requested_secrets=action.secret_names,
        egress_profile=action.egress_profile,
        targets=plan.targets,
        unresolved_domains=plan.unresolved_domains,
        unresolved_paths=plan.unresolved_paths,
        fs_path=drafted.fs_path,
        calls_remaining=calls_remaining,
        request_hash=plan.request_hash,
        request=drafted.policy_input,
    )
