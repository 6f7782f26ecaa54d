"""MoveHold: how approvals move on a front's word, along the table of ipc/approvals.py and nowhere else.

Guarantees that an approval is claimed by the front that asks, before its time is over; that a claim is ended by the
front that has it, or by any once that one is gone; that an outcome only grows; that an approval counts as executed when
the ledger has its receipt; and that a call is given back once, and only when nothing of it was dispatched.
"""

from typing import Final

from msgspec.structs import replace

from ipc.approvals import (
    APPROVED,
    CLAIMED,
    DENIED,
    ENDED,
    EXPIRED,
    FAILED,
    MOVES,
    PENDING,
    DecisionOutcome,
    encoded_outcome,
)
from ipc.backends.store import ApprovalRecord
from ipc.evidence import events
from ipc.operations.holds import MoveHold, VoidHolds
from ipc.texts.foreign_texts import MAX_REASON
from notary.operations.allowed import REFUSALS, check_code, check_event
from notary.operations.approving import claimed_outcome, evidence_of
from notary.operations.capping import give_back_hold
from notary.operations.ending import end_hold
from notary.operations.signed import check_claim, check_denial
from notary.reading.queries import has_intent_of_approval, receipt_id_of_approval
from notary.store.contract import ELSEWHERE
from notary.store.outcomes import decoded, kept_of, outcome_of
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

_EVENTS: Final[dict[str, tuple[str, frozenset[str], bool]]] = {
    # state after the move: type of its event, decisions, whether there must be one
    CLAIMED: (events.APPROVAL_GRANTED, frozenset({"allow"}), False),  # a deny has its event with its end
    DENIED: (events.APPROVAL_DENIED, frozenset({"deny"}), True),
    EXPIRED: (events.APPROVAL_EXPIRED, frozenset({"deny"}), True),
    FAILED: (events.ACTION_CALL, REFUSALS, False),  # how the call ended may be told already
}
"""An approval that was executed ends with the event of its call."""


@performs(MoveHold, writes=True)
def move_hold(unit: Transaction, asked: MoveHold) -> ApprovalRecord | None:
    """See MoveHold. Raises NotAllowed."""
    unit.part = "approvals"
    if (asked.from_state, asked.to_state) not in MOVES:
        raise NotAllowed("a move that approvals do not make")
    _check_event(asked)
    approval = unit.store.hold(asked.approval_id)
    if approval is None or approval.state != asked.from_state:
        return None
    if asked.from_state == PENDING:
        # A claim must come before the end of its time and of its epoch, an expiry after one of them; whichever comes
        # otherwise finds nothing.
        is_over = approval.expires_at <= unit.now or approval.epoch != unit.epoch
        unit.part = "approvals"
        if is_over != (asked.to_state == EXPIRED):
            return None
        _check_pending(unit, asked, approval)
    else:
        _check_ending(unit, asked, approval)
    if asked.refunds:
        _check_refund(unit, asked, approval)
    claimed = claimed_outcome(unit, asked, approval)
    if asked.to_state in ENDED:
        moved = end_hold(unit, approval, asked.to_state, asked.outcome)
    else:
        moved = unit.store.move_hold(
            asked.approval_id, asked.from_state, asked.to_state, holder=asked.holder,
            outcome=asked.outcome if claimed is None else encoded_outcome(claimed),
        )  # fmt: skip
    if asked.to_state in (DENIED, EXPIRED, FAILED):
        _give_back_of_hour(unit, asked.approval_id)
        give_back_hold(unit, approval)
    if asked.refunds:
        unit.part = "budget"
        unit.store.refund(approval.session_id)
    if asked.event is not None:
        unit.append(asked.event, **evidence_of(claimed, approval))
    # SECURITY: what is answered is kept for a front that asks again; a request must not lie there.
    return None if moved is None else replace(moved, body="")


@performs(VoidHolds, writes=True)
def void_holds(unit: Transaction, asked: VoidHolds) -> None:
    """See VoidHolds. Their ends follow, each with its event and its call given back."""
    unit.part = "approvals"
    for approval_id in asked.approval_ids:
        unit.store.void_hold(approval_id)


def _check_event(asked: MoveHold) -> None:
    event_type, decisions, is_needed = _EVENTS.get(asked.to_state, ("", frozenset[str](), False))
    if asked.event is None:
        if is_needed:
            raise NotAllowed("a move without its event")
        return
    check_event(asked.event, event_type, decisions)
    if asked.event.approval_id != asked.approval_id:
        raise NotAllowed("the event of another approval")
    if asked.to_state == FAILED:
        check_code(asked.event.error_code)


def _check_pending(unit: Transaction, asked: MoveHold, approval: ApprovalRecord) -> None:
    if asked.to_state == EXPIRED:
        if asked.holder is not None or asked.outcome != approval.outcome:
            raise NotAllowed("an expiry that says more than that")
        return
    outcome = _outcome(asked)
    if asked.holder != unit.front_id:
        raise NotAllowed("a claim for another front")
    only = DecisionOutcome(
        claimed_by=outcome.claimed_by, claimed_at=outcome.claimed_at, approval_signature=outcome.approval_signature
    )  # fmt: skip
    if not outcome.claimed_by or outcome != only:
        raise NotAllowed("a claim that says more than that, or less")
    check_claim(unit, approval, outcome, asked.event)


def _check_ending(unit: Transaction, asked: MoveHold, approval: ApprovalRecord) -> None:
    holder = approval.holder or ""
    if holder != unit.front_id and (holder in unit.state.fronts or ELSEWHERE in holder):
        raise NotAllowed("an approval that another front has claimed")
    before, after = outcome_of(approval), _outcome(asked)
    fields = {
        APPROVED: {"receipt_id": after.receipt_id},
        DENIED: {"deny_reason": after.deny_reason},
        FAILED: {"error_code": after.error_code},
    }[asked.to_state]
    only = DecisionOutcome(
        claimed_by=before.claimed_by, claimed_at=before.claimed_at, completed_at=after.completed_at,
        approval_signature=before.approval_signature, approvals=before.approvals, **fields,
    )  # fmt: skip
    if asked.holder is not None or after != only or len(after.deny_reason or "") > MAX_REASON:
        raise NotAllowed("an end that says something else than the ends of its kind")
    if asked.to_state == DENIED:
        check_denial(unit, after, asked.event)
    if asked.to_state == FAILED:
        check_code(after.error_code)
    if asked.to_state == APPROVED:
        unit.settle()
        receipt_id = receipt_id_of_approval(unit.connection, asked.approval_id)
        if receipt_id is None or receipt_id != after.receipt_id:
            raise NotAllowed("an end without the receipt that it names")


def _check_refund(unit: Transaction, asked: MoveHold, approval: ApprovalRecord) -> None:
    if asked.to_state not in (DENIED, EXPIRED, FAILED) or not kept_of(approval).has_budget:
        raise NotAllowed("a call given back that was not taken")
    unit.settle()
    if has_intent_of_approval(unit.connection, asked.approval_id):
        raise NotAllowed("a call given back that was dispatched, or is given back already")


def _give_back_of_hour(unit: Transaction, approval_id: str) -> None:
    """Give a held call back to its principal's hour: the notary counts it itself and needs no request of a front."""
    unit.part = "budget"
    if unit.store.is_counted_hold(approval_id):
        unit.settle()
        if not has_intent_of_approval(unit.connection, approval_id):
            unit.store.give_back_hold(approval_id)


def _outcome(asked: MoveHold) -> DecisionOutcome:
    outcome = decoded(asked.outcome)
    if outcome is None:
        raise NotAllowed("an invalid outcome")
    return outcome
