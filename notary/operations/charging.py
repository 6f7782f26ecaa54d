"""Charge a call to its session's budget and to its principal's hour: both or neither."""

from typing import Any, NamedTuple

from msgspec.structs import replace

from ipc.evidence.events import AuditEvent
from ipc.operations.calls import Open, Refusal
from ipc.operations.holds import Hold
from notary.operations.refusing import debited, refused
from notary.store import quotas
from notary.units.transaction import Transaction

HOUR = "max_calls_per_hour"


class Charged(NamedTuple):
    """The event that tells what was left before and after. `minute`: where the call is counted, if it is."""

    event: AuditEvent
    minute: int | None


def charged(unit: Transaction, event: AuditEvent, asked: Open | Hold) -> Charged | Refusal:
    """Take one call, or write the event of the refusal."""
    principal, session_id, limit = event.principal or "", event.session_id or "", asked.calls_per_hour
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    minute = None
    if limit is not None:
        unit.part = "budget"
        used, free_in = unit.store.calls_of(principal, unit.now)
        # A session whose budget is spent hears that: unlike the hour, it does not end by itself.
        if used >= limit and not (asked.has_budget and unit.store.budget(session_id).remaining < 1):
            refusal = refused(unit, event, "budget_exhausted", f"{HOUR} of {principal}, {limit}, is used up")
            return replace(refusal, retry_after=free_in, quota=HOUR)
        minute = quotas.minute_of(unit.now)
        before["calls_remaining_this_hour"], after["calls_remaining_this_hour"] = limit - used, limit - used - 1
    if asked.has_budget:
        taken = debited(unit, event, session_id)
        if isinstance(taken, Refusal):
            return taken
        before["calls_remaining"], after["calls_remaining"] = taken
    if minute is not None:
        unit.part = "budget"
        unit.store.count_call(principal, minute)
    return Charged(replace(event, budgets_before=before, budgets_after=after) if before else event, minute)
