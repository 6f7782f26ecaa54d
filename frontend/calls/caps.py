"""Caps of a call, as a front sees them: it reads the value and names the counter; the notary counts (ipc/caps.py).

A value that is no number of 0 or more is denied. Calls without an owner count together where a cap is per owner.
"""

from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from contract.approvals import CapOfCall
from frontend.actions.planning import Draft
from frontend.policy.acl import PolicyFiles
from frontend.policy.by_values import CAP_RULE, counted_units
from frontend.policy.question import Decision
from frontend.policy.value_rules import Cap
from ipc.caps import CapReading, CapUse, rounded, text_of
from ipc.plan import UndecidedPlan
from ipc.texts.scalars import exact


class MustBeHeld(Exception):
    """The notary did not open the call: it would go above the `hold_above` of a cap. Its proof is unused."""


def uses_of(drafted: Draft, files: PolicyFiles | None) -> tuple[CapUse, ...]:
    """The caps that an allowed or held call counts for. The allowlist lifts their holds."""
    caps = () if files is None else files.data.caps.get(drafted.plan.action_id, ())
    if not caps or files is None:
        return ()
    plan = drafted.plan
    is_spared = files.data.allowlist.get(plan.action_id, {}).get(plan.principal, False)
    return tuple(_use(cap, drafted, is_spared=is_spared) for cap in caps)


def shown_caps(readings: tuple[CapReading, ...]) -> tuple[dict[str, Any], ...]:
    """Caps as answers have them."""
    return tuple(to_builtins(_shown_cap(one)) for one in readings)


def _shown_cap(reading: CapReading) -> CapOfCall:
    use = reading.use
    return CapOfCall(
        pointer=use.pointer, per=use.per, total=reading.total, with_this=reading.with_this, hold_above=use.hold_above,
        deny_above=use.deny_above, window_seconds=use.window_seconds,
    )  # fmt: skip


def held_by_cap(decision: Decision) -> Decision:
    """The decision of a call that a cap holds."""
    return replace(decision, requires_approval=True, rule=CAP_RULE)


def _use(cap: Cap, drafted: Draft, *, is_spared: bool) -> CapUse:
    added = text_of(counted_units(cap, drafted.values) or 0)
    return CapUse(
        cap.pointer, cap.per, _subject(cap.per, drafted.plan), cap.window_seconds, added,
        None if is_spared else _limit(cap.hold_above), _limit(cap.deny_above),
    )  # fmt: skip


def _subject(per: str, plan: UndecidedPlan) -> str:
    if per == "principal":
        return plan.principal
    return (plan.owner or "") if per == "owner" else ""


def _limit(number: float | None) -> str | None:
    return None if number is None else text_of(rounded(exact(number), is_limit=True) or 0)
