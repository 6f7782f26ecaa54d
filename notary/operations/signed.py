"""Rules for the decisions of operators that a front reports: claims, denials and approved calls.

Guarantees that a signature in evidence verifies, covers this plan and the text that was shown of it, and was made by
the operator who is named beside it; and that with `approvals.require_signature` nothing is claimed without one.
"""

from typing import Final

import msgspec

from ipc.approvals import DecisionOutcome, read_body
from ipc.backends.store import ApprovalRecord
from ipc.configuration.quorum import is_met
from ipc.evidence.events import AuditEvent
from ipc.keys.shown import hash_of, shown
from ipc.keys.signed_approvals import APPROVE, DENY, SignatureRefused, Statement, Subject, check_statement, read
from ipc.network.loopback import own_addresses
from ipc.operations.calls import Approver
from ipc.texts.foreign_texts import clean_reason
from notary.operations.approvers import approving_operator, counting_approvals
from notary.signing.operators import signed_by
from notary.store.outcomes import kept_of, outcome_of
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

PATIENCE_SECONDS: Final = 30.0
"""A signature that was in its window when a front looked may be so much older here: another notary may have been
killed in between."""


def check_claim(
    unit: Transaction, approval: ApprovalRecord, outcome: DecisionOutcome, event: AuditEvent | None
) -> None:
    """A claim, with its event if the call is to run. Raises NotAllowed."""
    _check_same(event, outcome.approval_signature)
    statement = _checked(unit, approval, outcome, event)
    if statement is not None and event is not None:
        if statement.decision != APPROVE:
            raise NotAllowed("an approval that its operator has denied")
        learns = (statement.learn_domain, statement.learn_path) != (None, None)
        if learns != (event.reason is not None):
            raise NotAllowed("an approval that learns what its operator has not signed")


def check_denial(unit: Transaction, outcome: DecisionOutcome, event: AuditEvent | None) -> None:
    """The end of a claim as denied: what was signed when it was claimed. Raises NotAllowed."""
    _check_same(event, outcome.approval_signature)
    if outcome.approval_signature is None or event is None:
        _check_optional(unit)
        return
    statement = read(outcome.approval_signature).statement
    if statement.decision != DENY:
        raise NotAllowed("a denial that its operator has approved")
    reason = None if statement.reason is None else clean_reason(statement.reason)
    if event.deny_reason != reason or outcome.deny_reason != reason or event.approved_by != outcome.claimed_by:
        raise NotAllowed("a denial in other words than its operator's")


def check_approver(unit: Transaction, approval: ApprovalRecord, approver: Approver) -> Approver:
    """The approver of a call that is to run, with the signature that was checked. Raises NotAllowed."""
    outcome, kept = outcome_of(approval), kept_of(approval)
    signature = outcome.approval_signature
    approving_operator(unit, approver.approved_by, approver.operator_jkt, kept)
    if approver.signature is not None or approver.approvals or approver.quorum is not None:
        raise NotAllowed("an approver with a signature of the front's")
    if (quorum := kept.quorum) is not None:
        given = counting_approvals(unit, outcome, kept)
        if not is_met(quorum, [one.groups for one in given]):
            raise NotAllowed("a call whose quorum is not met")
        approver = msgspec.structs.replace(approver, quorum=quorum, approvals=given)
    if signature is None:
        _check_optional(unit)
        return approver
    signed = read(signature)
    if signed.statement.decision != APPROVE:
        raise NotAllowed("a call that its operator has denied")
    if signed.jkt != approver.operator_jkt:
        raise NotAllowed("an approver with another key than the one that has signed")
    return msgspec.structs.replace(approver, signature=signature)


def _checked(
    unit: Transaction, approval: ApprovalRecord, outcome: DecisionOutcome, event: AuditEvent | None
) -> Statement | None:  # fmt: skip
    settings, signature, operator = unit.state.settings, outcome.approval_signature, outcome.claimed_by or ""
    if signature is None:
        _check_optional(unit)
        return None
    try:
        body = read_body(approval.body)
    except ValueError:
        raise NotAllowed("a signature of a plan that can't be read") from None
    try:
        # Before the hash, which takes long for a large call: only an operator's own signature is worth it.
        signed = signed_by(signature, operator, settings.operators)
        shown_hash = hash_of(shown(approval, body))
        if shown_hash is None or not body.is_intact:
            raise NotAllowed("a signature of a plan that is not whole")
        subject = Subject(
            own_addresses(settings), approval.approval_id, approval.action_id, body.plan_hash, shown_hash, operator
        )
        check_statement(signed.statement, subject, unit.now, PATIENCE_SECONDS)
    except SignatureRefused as refused:
        raise NotAllowed(f"a signature that does not hold: {refused}") from None
    if event is not None and (event.approved_by, event.operator_sender_binding) != (operator, signed.jkt):
        raise NotAllowed("an approval in another name, or by another key, than the one that has signed")
    return signed.statement


def _check_optional(unit: Transaction) -> None:
    if unit.state.settings.approvals.require_signature:
        raise NotAllowed("a decision without the operator's signature")


def _check_same(event: AuditEvent | None, signature: str | None) -> None:
    if event is not None and event.approval_signature != signature:
        raise NotAllowed("an event with another signature than its claim")
