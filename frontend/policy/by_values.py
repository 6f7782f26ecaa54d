"""A decision of the engine, made as strict as the data's rules about values of requests ask (value_rules.py).

Thresholds, and caps whose value can't be counted, stand beside the engine, so that they hold for every policy, embedded
or by an OPA: an allowed call may become held or denied, a held one denied, never the reverse. The allowlist lifts
holds.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from frontend.policy.data import PolicyData
from frontend.policy.question import Decision
from frontend.policy.value_rules import RULE, Cap, strictest
from ipc.caps import rounded
from ipc.texts.pointers import Values
from ipc.texts.scalars import exact, is_number

CAP_RULE: Final = "cap"


def by_values(decision: Decision, data: PolicyData, action_id: str, principal: str, values: Values) -> Decision:
    """The decision about a call with these values of its request."""
    thresholds = data.thresholds.get(action_id)
    unfit = uncountable(data.caps.get(action_id, ()), values) if decision.allow else None
    if unfit is not None:
        return denied(decision, unfit, CAP_RULE)
    if not thresholds or not decision.allow:
        return decision
    found = strictest(thresholds, values)
    if found is None:
        return decision
    outcome, threshold = found
    if outcome == "deny":
        return denied(decision, f"denied by a threshold of {action_id}: {threshold.said()}", RULE)
    is_spared = data.allowlist.get(action_id, {}).get(principal, False)
    if decision.requires_approval or is_spared:
        return decision
    return replace(decision, requires_approval=True, rule=RULE)


def uncountable(caps: Iterable[Cap], values: Values) -> str | None:
    """Why a cap denies a call, whatever has been counted; None for a call whose values can be counted."""
    for cap in caps:
        if counted_units(cap, values) is None:
            return f"{cap.pointer} is no amount that its cap can count"
    return None


def counted_units(cap: Cap, values: Values) -> int | None:
    """The amount that a call adds to a cap, in its units; None if the call has no number there."""
    value = values.get(cap.pointer)
    return rounded(exact(value)) if is_number(value) else None


def denied(decision: Decision, reason: str, rule: str) -> Decision:
    """The decision that denies a call for this reason; `rule` is `threshold` or `cap`."""
    return replace(decision, allow=False, requires_approval=False, deny_reason=reason, rule=rule, allowed_sinks=())
