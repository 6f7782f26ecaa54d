"""GiveApproval: one approval of several; and the claim of a hold that needs several.

SECURITY: the notary takes key, role, groups and owner of the operator from its own settings (approvers.py), and claims
no hold before its stored quorum is met.
"""

from typing import Any

import msgspec

from ipc.approvals import CLAIMED, PENDING, DecisionOutcome, encoded_outcome
from ipc.backends.store import ApprovalRecord
from ipc.configuration.quorum import GivenApproval, Quorum, is_met
from ipc.evidence.events import APPROVAL_GIVEN, AuditEvent
from ipc.operations.holds import MoveHold
from ipc.operations.quorum import ApprovalNoted, GiveApproval
from notary.operations.allowed import check_event
from notary.operations.approvers import approving_operator, counting_approvals
from notary.operations.signed import check_claim
from notary.store.outcomes import KeptMembers, kept_of, outcome_of
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction


@performs(GiveApproval, writes=True)
def give_approval(unit: Transaction, asked: GiveApproval) -> ApprovalNoted | None:
    """See GiveApproval. Raises NotAllowed."""
    unit.part = "approvals"
    check_event(asked.event, APPROVAL_GIVEN, frozenset({"pending_approval"}))
    approval = unit.store.hold(asked.approval_id)
    if approval is None or approval.state != PENDING:
        return None
    if approval.expires_at <= unit.now or approval.epoch != unit.epoch:
        return None
    kept = kept_of(approval)
    quorum = kept.quorum
    if quorum is None or asked.event.approval_id != asked.approval_id:
        raise NotAllowed("one approval of several for a hold that needs one, or the event of another")
    own = _own(unit, kept, asked.event, asked.given.at, quorum)
    if own != msgspec.structs.replace(asked.given, groups=own.groups):
        raise NotAllowed("an approval that its event tells otherwise")
    outcome = DecisionOutcome(claimed_by=own.approved_by, approval_signature=own.signature)
    check_claim(unit, approval, outcome, asked.event)
    counting = counting_approvals(unit, outcome_of(approval), kept)
    if _has_approved(own, counting):
        return ApprovalNoted("repeated", counting)
    given = (*counting, own)
    if is_met(quorum, [one.groups for one in given]):
        return ApprovalNoted("last", given)
    after = encoded_outcome(msgspec.structs.replace(outcome_of(approval), approvals=given))
    unit.store.move_hold(asked.approval_id, PENDING, PENDING, outcome=after)
    unit.append(asked.event, quorum=msgspec.to_builtins(quorum))
    return ApprovalNoted("given", given)


def claimed_outcome(unit: Transaction, asked: MoveHold, approval: ApprovalRecord) -> DecisionOutcome | None:
    """The outcome of the claim of a hold that needs several approvals, with all of them; None for any other move.

    Raises NotAllowed for a claim that would run the call before its quorum is met, or by an operator who may not
    approve it.
    """
    if asked.to_state != CLAIMED:
        return None
    kept, event = kept_of(approval), asked.event
    quorum = kept.quorum
    if quorum is None:
        if event is not None:
            approving_operator(unit, event.approved_by, event.operator_sender_binding or "", kept)
        return None
    outcome = msgspec.json.decode(asked.outcome, type=DecisionOutcome)
    if event is None:  # a denial, or a plan that will not run
        return msgspec.structs.replace(outcome, approvals=outcome_of(approval).approvals)
    own = _own(unit, kept, event, outcome.claimed_at or "", quorum)
    counting = counting_approvals(unit, outcome_of(approval), kept)
    given = (*counting, own)
    if _has_approved(own, counting) or not is_met(quorum, [one.groups for one in given]):
        raise NotAllowed("the claim of a hold whose quorum is not met")
    return msgspec.structs.replace(outcome, approvals=given)


def evidence_of(outcome: DecisionOutcome | None, approval: ApprovalRecord) -> dict[str, Any]:
    """The members that the event of the last approval has."""
    if outcome is None:
        return {}
    quorum = kept_of(approval).quorum
    return {"quorum": msgspec.to_builtins(quorum), "approvals": msgspec.to_builtins(outcome.approvals)}


def _has_approved(own: GivenApproval, counting: tuple[GivenApproval, ...]) -> bool:
    return any(own.approved_by == one.approved_by or own.operator_jkt == one.operator_jkt for one in counting)


def _own(unit: Transaction, kept: KeptMembers, event: AuditEvent, at: str, quorum: Quorum) -> GivenApproval:
    jkt = event.operator_sender_binding or ""
    operator = approving_operator(unit, event.approved_by, jkt, kept)
    groups = tuple(name for name in quorum.groups if name in operator.groups)
    return GivenApproval(operator.name, jkt, event.operator_proof_jti or "", at, groups, event.approval_signature)
