"""How an intent ends: as its worker reports, without a report, withdrawn before anything was dispatched, or as an
operator says.

SECURITY: no front may ask Reported and Lost. The notary makes them from the message of a worker on its channel, and
from the supervisor's message that the worker has ended.
"""

from typing import Any

from contract.failures import CallFailure, fields_of
from ipc.approvals import APPROVED, CLAIMED, FAILED
from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import INTENT_RESOLVED
from ipc.messages.calling import Result, code_of_failure
from ipc.operations.calls import Closed, Withdraw, Withdrawn
from ipc.operations.intents import INTENT_OUTCOMES, IntentResolution, ResolveIntent
from ipc.operations.operation import Operation
from ipc.process.clock import iso
from ipc.texts.foreign_texts import clean_reason
from notary.ledger.conclusion import CUT, Conclusion, conclude, conclude_lost, receipt_of
from notary.ledger.intents import OpenIntent
from notary.ledger.receipts import LedgerReceipt
from notary.operations import capping
from notary.operations.allowed import REFUSALS, check_code, check_event, check_own
from notary.operations.ending import end_hold
from notary.operations.idempotency import keep_end, keep_resolved, keep_withdrawn
from notary.operations.standing import give_back_use
from notary.reading import queries
from notary.store.outcomes import ended
from notary.units.performing import performs
from notary.units.tasks import NotAllowed, NotOpen
from notary.units.transaction import Transaction


class Reported(Operation[Closed], frozen=True):
    """The result of a call, told by the worker that has the word for it. Answers Closed, as its Open is answered."""

    result: Result


class Lost(Operation[Closed], frozen=True):
    """The worker of a call ended without a result. Answers Closed, under the number of the call's Open."""

    intent_id: str
    reason: str


@performs(Reported, writes=True)
def report_call(unit: Transaction, asked: Reported) -> Closed:
    """See Reported. Raises NotOpen."""
    intent = _open(unit, asked.result.call_id)
    return _close(unit, intent, conclude(asked.result, intent.terms), asked.result.output)


@performs(Lost, writes=True)
def lose_call(unit: Transaction, asked: Lost) -> Closed:
    """See Lost. Raises NotOpen."""
    intent = _open(unit, asked.intent_id)
    is_cut = unit.is_cut(asked.intent_id)
    return _close(unit, intent, CUT if is_cut else conclude_lost(clean_reason(asked.reason)))


@performs(Withdraw, writes=True)
def withdraw_call(unit: Transaction, asked: Withdraw) -> Withdrawn:
    """See Withdraw. Raises NotOpen, NotAllowed."""
    if asked.decision not in REFUSALS:
        raise NotAllowed("a call withdrawn with another decision than a refusal")
    check_code(asked.error_code)
    intent = _open(unit, asked.intent_id)
    check_own(unit, intent)
    if not unit.is_unbegun(asked.intent_id):
        if unit.has_lost_worker(intent):  # no worker will tell of its end
            _close(unit, intent, CUT)
        else:
            unit.cut(intent)
        return Withdrawn(is_abandoned=False)
    unit.resolve(intent.intent_id)
    unit.withdrawn[intent.intent_id] = asked.error_code
    event = intent.event
    more: dict[str, Any] = {
        "decision": asked.decision,
        "error_code": asked.error_code,
        "reason": None if asked.reason is None else clean_reason(asked.reason),
        "intent_id": intent.intent_id,
        "grant_id": intent.grant_id,
        **fields_of(asked.failure),
    }
    _give_back(unit, intent)
    keep_withdrawn(unit, intent)
    if event.budgets_before is not None:
        more["budgets_after"] = event.budgets_before
    unit.append(event, **more)
    _end_approval(unit, intent, FAILED, error_code=asked.error_code)
    return Withdrawn(is_abandoned=True)


@performs(ResolveIntent, writes=True)
def resolve_intent(unit: Transaction, asked: ResolveIntent) -> IntentResolution | None:
    """See ResolveIntent. Raises NotAllowed."""
    check_event(asked.event, INTENT_RESOLVED, frozenset({"allow"}))
    if asked.outcome not in INTENT_OUTCOMES or asked.event.change is not None:
        raise NotAllowed("an outcome that no intent has")
    unit.settle()
    intent = unit.intent(asked.intent_id)
    row = queries.unresolved_intent(unit.connection, asked.intent_id)
    if row is None:
        return None
    view = row[0]
    if unit.may_still_end(asked.intent_id):
        return IntentResolution(view.trace_id, view.action_id, is_under_way=True)
    intent = unit.intent(asked.intent_id)
    keep_resolved(unit, intent, asked.outcome)
    unit.resolve(asked.intent_id)
    _resolve_caps(unit, intent, asked.outcome)
    look = queries.last_look(unit.connection, asked.intent_id, view.trace_id)
    unit.append(
        asked.event, trace_id=view.trace_id, action_id=view.action_id, grant_id=view.grant_id,
        intent_id=asked.intent_id, change={"outcome": asked.outcome}, seen=None if look is None else look.seen,
        **_whose(intent),
        kept=None if intent is None else intent.event.kept,
        summary_template=None if intent is None else intent.event.summary_template,
    )  # fmt: skip
    return IntentResolution(view.trace_id, view.action_id)


def _whose(intent: OpenIntent | None) -> dict[str, Any]:
    """The fields of an event by which the caller of an intent finds the end of its call."""
    if intent is None:
        return {}
    return {"key_thumbprint": intent.event.key_thumbprint, "request_hash": intent.event.request_hash}


def _give_back(unit: Transaction, intent: OpenIntent) -> None:
    """A call that is not executed counts nowhere."""
    unit.part = "budget"
    if intent.has_budget:
        unit.store.refund(intent.event.session_id or "")
    if intent.minute is not None:
        unit.store.give_back(intent.event.principal or "", intent.minute)
    if intent.approver is not None:
        unit.store.give_back_hold(intent.approver.approval_id)
    capping.give_back(unit, intent.event.action_id or "", intent.caps)
    give_back_use(unit, intent.standing)


def _close(unit: Transaction, intent: OpenIntent, conclusion: Conclusion, output: str | None = None) -> Closed:
    """Receipt and event of a call that was dispatched."""
    unit.resolve(intent.intent_id)
    receipt = receipt_of(conclusion, intent, iso(unit.now), unit.state.signers.receipts)
    succeeded, failure = conclusion.kind == "success", conclusion.failure(intent.terms)
    more: dict[str, Any] = {
        "decision": "allow" if succeeded else "error",
        "runtime": conclusion.runtime,
        "grant_id": intent.grant_id,
        "receipt_id": receipt.receipt_id,
        "receipt_hash": receipt.hash,
        "intent_id": intent.intent_id,
        "verification_outcome": conclusion.verification.outcome,
        "response_hash": conclusion.response_hash,
        "error_code": None if succeeded else code_of_failure(conclusion.detail["outcome"]),
        "reason": conclusion.reason,
        "response_schema_violation": conclusion.violation,
        **fields_of(failure),
    }
    if intent.caps:
        _settle_caps(unit, intent, failure)
    unit.append(intent.event, receipt, **more)
    _end_approval(unit, intent, APPROVED, receipt)
    closed = Closed(
        intent.grant_id, receipt.receipt_id, conclusion.kind, conclusion.detail["outcome"],
        conclusion.verification.outcome, conclusion.runtime, conclusion.reason, conclusion.response_hash,
        conclusion.violation, failure,
    )  # fmt: skip
    keep_end(unit, intent, closed, output)
    return closed


def _resolve_caps(unit: Transaction, intent: OpenIntent | None, outcome: str) -> None:
    """An operator has said whether a call happened."""
    if intent is None or not intent.caps:
        return
    if outcome == "did_not_happen":
        capping.give_back(unit, intent.event.action_id or "", intent.caps)
    elif outcome == "unknown":
        capping.mark_unknown(unit, intent.event.action_id or "", intent.caps)


def _settle_caps(unit: Transaction, intent: OpenIntent, failure: CallFailure | None) -> None:
    """A call counts unless it is known not to have had its effect."""
    action_id = intent.event.action_id or ""
    if failure is None or failure.may_have_run == "yes":
        return
    if failure.may_have_run == "no":
        capping.give_back(unit, action_id, intent.caps)
    else:
        capping.mark_unknown(unit, action_id, intent.caps)


def _open(unit: Transaction, intent_id: str) -> OpenIntent:
    intent = unit.intent(intent_id)
    if intent is None:
        raise NotOpen(f"{clean_reason(intent_id)} is not open")
    return intent


def _end_approval(
    unit: Transaction,
    intent: OpenIntent,
    state: str,
    receipt: LedgerReceipt | None = None,
    error_code: str | None = None,
) -> None:
    """The approval that let a call run ends with it; one that was ended otherwise stays as it is."""
    if intent.approver is None:
        return
    unit.part = "approvals"
    approval: ApprovalRecord | None = unit.store.hold(intent.approver.approval_id)
    if approval is None:
        return
    outcome = ended(approval, iso(unit.now), receipt.receipt_id if receipt else None, error_code)
    if approval.state == CLAIMED:
        end_hold(unit, approval, state, outcome)
