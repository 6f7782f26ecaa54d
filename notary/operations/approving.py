"""GiveApproval: one approval of several; and the claim of a hold that needs several.

SECURITY: a front says who approves. The notary takes key, role, groups and owner of that operator from its own
settings, and claims no hold before its stored quorum is met.
"""

from typing import Any

import msgspec

from ipc.approvals import CLAIMED, PENDING, DecisionOutcome, encoded_outcome
from ipc.backends.store import ApprovalRecord
from ipc.events import APPROVAL_GIVEN, AuditEvent
from ipc.operations.holds import MoveHold
from ipc.operations.quorum import ApprovalNoted, GiveApproval
from ipc.quorum import GivenApproval, Quorum, in_force, is_met
from ipc.roles import APPROVE_ROLE
from notary.operations.allowed import check_event
from notary.operations.signed import check_claim
from notary.performing import performs
from notary.store.outcomes import kept_of, outcome_of
from notary.tasks import NotAllowed
from notary.unit import Transaction


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
    quorum = kept_of(approval).quorum
    if quorum is None or asked.event.approval_id != asked.approval_id:
        raise NotAllowed("one approval of several for a hold that needs one, or the event of another")
    own = _own(unit, approval, asked.event, asked.given.at, quorum)
    if own != msgspec.structs.replace(asked.given, groups=own.groups):
        raise NotAllowed("an approval that its event tells otherwise")
    outcome = DecisionOutcome(claimed_by=own.approved_by, approval_signature=own.signature)
    check_claim(unit, approval, outcome, asked.event)
    counting = _counting(unit, approval)
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

    Raises NotAllowed for a claim that would run the call before its quorum is met.
    """
    quorum = kept_of(approval).quorum
    if quorum is None or asked.to_state != CLAIMED:
        return None
    outcome = msgspec.json.decode(asked.outcome, type=DecisionOutcome)
    if asked.event is None:  # a denial, or a plan that will not run
        return msgspec.structs.replace(outcome, approvals=outcome_of(approval).approvals)
    own, counting = _own(unit, approval, asked.event, outcome.claimed_at or "", quorum), _counting(unit, approval)
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


def _counting(unit: Transaction, approval: ApprovalRecord) -> tuple[GivenApproval, ...]:
    return in_force(outcome_of(approval).approvals, unit.state.settings.operators)


def _has_approved(own: GivenApproval, counting: tuple[GivenApproval, ...]) -> bool:
    return any(own.approved_by == one.approved_by or own.operator_jkt == one.operator_jkt for one in counting)


def _own(unit: Transaction, approval: ApprovalRecord, event: AuditEvent, at: str, quorum: Quorum) -> GivenApproval:
    named = [one for one in unit.state.settings.operators if one.name == event.approved_by]
    if not named or APPROVE_ROLE not in named[0].roles:
        raise NotAllowed("an approval by an operator who may not approve")
    operator, jkt = named[0], event.operator_sender_binding or ""
    if operator.dpop_jkt not in (None, jkt):
        raise NotAllowed("an approval by another key than the operator's")
    if operator.owner is not None and operator.owner == kept_of(approval).plan.owner:
        raise NotAllowed("an operator's approval of a call of their own")
    groups = tuple(name for name in quorum.groups if name in operator.groups)
    return GivenApproval(operator.name, jkt, event.operator_proof_jti or "", at, groups, event.approval_signature)
