"""Thresholds on a policy's answer about a call (frontend/policy/by_values.py)."""

from frontend.actions.planning import Draft
from frontend.policy.acl import PolicyFiles
from frontend.policy.by_values import by_values
from frontend.policy.question import Decision


def with_thresholds(decision: Decision, drafted: Draft, files: PolicyFiles | None) -> Decision:
    """The decision, made as strict as the thresholds of the policy in force ask. Without a policy it is unchanged."""
    if files is None:
        return decision
    plan = drafted.plan
    return by_values(decision, files.data, plan.action_id, plan.principal, drafted.values)
