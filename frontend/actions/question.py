"""What policy is asked of a draft: the one place that makes a Question, for calls and for `gateway policy explain`."""

from frontend.actions.planning import Draft
from frontend.policy.question import Question


def question_of(drafted: Draft) -> Question:
    """The input document of docs/policy.md."""
    action = drafted.action
    return Question(
        principal=drafted.principal,
        owner=drafted.owner,
        action_id=action.action_id,
        action_version=action.version,
        action_risk_level=action.risk_level,
        action_trust_verdict=action.trust_verdict,
        scopes=drafted.scopes,
        required_scopes=action.required_scopes,
        requested_sinks=drafted.sinks,
        requested_secrets=action.secret_names,
        egress_profile=action.egress_profile,
        targets=drafted.targets,
        unresolved_domains=drafted.unresolved_domains,
        unresolved_paths=drafted.unresolved_paths,
        fs_path=drafted.fs_path,
        calls_remaining=drafted.calls_remaining,
        request_hash=drafted.request_hash,
    )
