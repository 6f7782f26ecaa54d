"""Thresholds on a policy's answer: an allowed call may become held or denied, a held one denied, never the reverse.

They stand beside the engine, so that they hold for every policy, embedded or by an OPA. The allowlist lifts holds.
"""

from msgspec.structs import replace

from frontend.actions.planning import Draft
from frontend.calls import caps
from frontend.calls.caps import uncountable
from frontend.policy.acl import PolicyFiles
from frontend.policy.data import PolicyData
from frontend.policy.question import Decision
from frontend.policy.value_rules import RULE, strictest


def with_thresholds(decision: Decision, drafted: Draft, files: PolicyFiles | None) -> Decision:
    """The decision, made as strict as the thresholds of the policy in force ask. Without a policy it is unchanged."""
    plan = drafted.plan
    data = PolicyData("") if files is None else files.data
    thresholds = data.thresholds.get(plan.action_id)
    unfit = uncountable(data.caps.get(plan.action_id, ()), drafted) if decision.allow else None
    if unfit is not None:
        return denied(decision, unfit, caps.RULE)
    if not thresholds or not decision.allow:
        return decision
    found = strictest(thresholds, drafted.values)
    if found is None:
        return decision
    outcome, threshold = found
    if outcome == "deny":
        reason = f"denied by a threshold of {plan.action_id}: {threshold.said()}"
        return denied(decision, reason, RULE)
    is_spared = data.allowlist.get(plan.action_id, {}).get(plan.principal, False)
    if decision.requires_approval or is_spared:
        return decision
    return replace(decision, requires_approval=True, rule=RULE)


def denied(decision: Decision, reason: str, rule: str) -> Decision:
    """The decision of a call that is denied for this reason, by this rule of ours."""
    return replace(decision, allow=False, requires_approval=False, deny_reason=reason, rule=rule, allowed_sinks=())
