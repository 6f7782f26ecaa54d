"""Close and Abandon: how an intent ends, with its receipt and its event, or without anything having been dispatched."""

from typing import Any

from ipc.approvals import APPROVED, CLAIMED, FAILED
from ipc.clock import iso
from ipc.messages import Abandon, Close, Closed
from ipc.store import ApprovalRecord
from ipc.texts import clean_reason
from notary.ledger import intents
from notary.ledger.conclusion import CUT, Conclusion, conclude, conclude_lost, receipt_of
from notary.ledger.intents import OpenIntent
from notary.ledger.receipts import Receipt
from notary.operations.allowed import REFUSALS, check_code, check_own
from notary.store import budgets, holds
from notary.store.outcomes import ended
from notary.unit import NotAllowed, NotOpen, Unit


def close_call(unit: Unit, asked: Close) -> Closed:
    """See Close. Raises NotOpen, NotAllowed."""
    intent = _resolved(unit, asked.intent_id)
    conclusion = _conclusion(asked, intent)
    event, signers = intent.event, unit.state.signers
    receipt = receipt_of(conclusion, event, intent.grant_id, intent.started_at, iso(unit.now), signers.receipts)
    succeeded = conclusion.kind == "success"
    more: dict[str, Any] = {
        "decision": "allow" if succeeded else "error",
        "runtime": conclusion.runtime,
        "grant_id": intent.grant_id,
        "receipt_id": receipt.receipt_id,
        "intent_id": intent.intent_id,
        "verification_outcome": conclusion.verification.outcome,
        "response_hash": conclusion.response_hash,
        "error_code": None if succeeded else "action_execution_failed",
        "reason": conclusion.reason,
    }
    unit.append(event, receipt, **more)
    _end_approval(unit, intent, APPROVED, receipt)
    return Closed(
        receipt.receipt_id, conclusion.kind, conclusion.detail["outcome"], conclusion.verification.outcome,
        conclusion.runtime, conclusion.reason,
    )  # fmt: skip


def abandon_call(unit: Unit, asked: Abandon) -> None:
    """See Abandon. Raises NotOpen, NotAllowed."""
    if asked.decision not in REFUSALS:
        raise NotAllowed("a call abandoned with another decision than a refusal")
    check_code(asked.error_code)
    intent = _resolved(unit, asked.intent_id)
    event = intent.event
    more: dict[str, Any] = {
        "decision": asked.decision,
        "error_code": asked.error_code,
        "reason": None if asked.reason is None else clean_reason(asked.reason),
        "intent_id": intent.intent_id,
        "grant_id": intent.grant_id,
    }
    if intent.has_budget:
        unit.part = "budget"
        budgets.refund(unit.connection, event.session_id or "")
        more["budgets_after"] = event.budgets_before
    unit.append(event, **more)
    _end_approval(unit, intent, FAILED, error_code=asked.error_code)


def _resolved(unit: Unit, intent_id: str) -> OpenIntent:
    intent = unit.intent(intent_id) or intents.waiting(unit.connection, intent_id)
    if intent is None:
        raise NotOpen(f"{clean_reason(intent_id)} is not open")
    check_own(unit, intent)
    if not intents.resolve(unit.connection, intent_id):
        raise NotOpen(f"{intent_id} is not open")
    unit.closed(intent_id)
    return intent


def _conclusion(asked: Close, intent: OpenIntent) -> Conclusion:
    if asked.is_cut:
        return CUT
    if asked.result is None:
        return conclude_lost(clean_reason(asked.lost or "no result"))
    return conclude(asked.result, intent.terms)


def _end_approval(
    unit: Unit, intent: OpenIntent, state: str, receipt: Receipt | None = None, error_code: str | None = None
) -> None:
    """The approval that let a call run ends with it; one that was ended by somebody else stays as it is."""
    if intent.approver is None:
        return
    unit.part = "approvals"
    approval: ApprovalRecord | None = holds.get(unit.connection, intent.approver.approval_id)
    if approval is None or approval.state != CLAIMED:
        return
    outcome = ended(approval, iso(unit.now), receipt.receipt_id if receipt else None, error_code)
    holds.move(unit.connection, approval.approval_id, CLAIMED, state, outcome=outcome)
