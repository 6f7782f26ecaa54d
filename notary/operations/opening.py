"""Enter and Open: a proof is used once; a call has its intent before it is dispatched."""

from typing import Any

from msgspec.structs import replace

from ipc.clock import iso
from ipc.events import AuditEvent
from ipc.identifiers import new
from ipc.messages import Approver, Enter, Entered, Open, Opened, Refusal
from notary.ledger import intents
from notary.ledger.intents import OpenIntent
from notary.operations.allowed import check_opening
from notary.operations.refusing import checked, debited, is_used
from notary.unit import NotAllowed, Unit


def enter(unit: Unit, asked: Enter) -> Entered:
    """See Enter."""
    is_fresh = not is_used(unit, asked.proof)
    return Entered(is_fresh, unit.epoch)


def open_call(unit: Unit, asked: Open) -> Opened | Refusal:
    """See Open. Raises NotAllowed."""
    event, terms, approver = asked.event, asked.terms, asked.approver
    check_opening(unit, asked)
    if intents.is_known(unit.connection, asked.intent_id):
        raise NotAllowed("the id of another intent")
    if approver is not None:
        event = approved(event, approver)
    stale = "invalid_lease" if approver is None else "plan_integrity"
    refusal = checked(unit, event, asked.proof, terms.epoch, stale)
    if refusal is not None:
        return refusal
    calls: tuple[int, int] | None = None
    if asked.has_budget and approver is None:  # a call that was held was debited then
        taken = debited(unit, event, event.session_id or "")
        if isinstance(taken, Refusal):
            return taken
        calls = taken
        event = with_calls(event, *taken)
    unit.part = "ledger"
    intent = OpenIntent(
        asked.intent_id, new("grant_"), iso(unit.now), event, terms, asked.has_budget, approver, unit.front_id
    )  # fmt: skip
    grant = unit.state.signers.grants.sign(
        terms, event.trace_id or "", intent.grant_id, now=unit.now, approver=approver
    )  # fmt: skip
    intents.write(unit.connection, intent, grant)
    unit.opened(intent)
    before, after = calls or (None, None)
    return Opened(intent.grant_id, grant, intent.started_at, before, after)


def approved(event: AuditEvent, approver: Approver) -> AuditEvent:
    """An event that tells who approved the call."""
    return replace(
        event, approval_id=approver.approval_id, approved_by=approver.approved_by,
        operator_sender_binding=approver.operator_jkt, operator_proof_jti=approver.operator_proof_jti,
    )  # fmt: skip


def with_calls(event: AuditEvent, before: int, after: int) -> AuditEvent:
    """An event that tells the budget before and after."""
    found: dict[str, Any] = {
        "budgets_before": {"calls_remaining": before},
        "budgets_after": {"calls_remaining": after},
    }
    return replace(event, **found)
