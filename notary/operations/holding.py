"""Refuse and Hold: calls that do not run now."""

import math

from msgspec.structs import replace

from ipc.approvals import PENDING, TTL_SECONDS, summary_of
from ipc.evidence.events import AuditEvent
from ipc.keys.shown import shown_quorum
from ipc.operations.calls import Refusal, Refuse, RepeatedCall, WrittenRefusal
from ipc.operations.holds import Hold, HoldInForce
from ipc.operations.standing import Lifted
from notary.operations import capping
from notary.operations.allowed import check_call, check_refusal
from notary.operations.charging import charged
from notary.operations.hold_room import what_is_full
from notary.operations.idempotency import give_key_to_hold, known, repeated
from notary.operations.refusing import checked, held_already, is_used, refused, without_body, write_refusal
from notary.operations.standing import lifted
from notary.reading import queries
from notary.store.outcomes import kept_of
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

SKEW_SECONDS = 60.0
"""How far the clock of a front may be ahead, between its look and the notary's."""


@performs(Refuse, writes=True)
def refuse(unit: Transaction, asked: Refuse) -> WrittenRefusal:
    """See Refuse. Raises NotAllowed."""
    event = asked.event
    check_refusal(event)
    if asked.unanswered is not None and _was_performed(unit, event, asked.unanswered):
        return WrittenRefusal()
    if is_used(unit, asked.proof):
        write_refusal(
            unit, replace(event, decision="deny", error_code="replay_detected", reason=None, deny_reason=None)
        )
        return WrittenRefusal(is_replay=True)
    if asked.unless_held:
        held = held_already(unit, event)
        if held is not None:
            return WrittenRefusal(held=held)
    # SECURITY: a lease that is revoked while its call is on the way gets no kept outcome.
    if asked.idempotency is None or event.error_code == "invalid_lease" or unit.is_revoked(event.session_id or ""):
        answer = None
    else:
        answer = known(unit, event, asked.idempotency)
    if answer is not None:
        return WrittenRefusal(repeated=answer)
    write_refusal(unit, event)
    return WrittenRefusal()


def _was_performed(unit: Transaction, event: AuditEvent, begun: str) -> bool:
    """The operation that began this intent or approval was performed, so that the call has its one event, or will."""
    unit.settle()
    return unit.intent(begun) is not None or queries.has_call_event(unit.connection, event.trace_id or "")


@performs(Hold, writes=True)
def hold(unit: Transaction, asked: Hold) -> HoldInForce | Refusal | RepeatedCall | Lifted:
    """See Hold. Raises NotAllowed."""
    event, approval = asked.event, asked.approval
    check_call(event, frozenset({"pending_approval", None}))
    unit.part = "approvals"
    _check_new(unit, asked)
    lifting = lifted(unit, asked) if asked.may_be_lifted else None
    if lifting is not None:
        return lifting
    refusal = checked(unit, event, asked.proof, asked.epoch, "invalid_lease")
    if refusal is not None:
        return refusal
    answer = repeated(unit, event, asked.idempotency)
    if answer is not None:
        return answer
    held = held_already(unit, event)
    if held is not None:
        give_key_to_hold(unit, event, asked.idempotency, held)
        return HoldInForce(held, is_repeated=True)
    full = what_is_full(unit, approval, unit.moment, asked.limit)
    if full is not None:
        refusal = refused(unit, event, "too_many_pending_approvals", full.cause)
        return replace(refusal, retry_after=None if full.free_at is None else math.ceil(full.free_at - unit.now))
    judged = capping.judge(unit, approval.action_id, asked.caps)
    denial = capping.denied_by_cap(unit, event, judged)
    if denial is not None:
        return denial
    taken = charged(unit, event, asked)
    if isinstance(taken, Refusal):
        return taken
    capping.reserve_hold(unit, approval, asked.caps)
    if taken.minute is not None:
        unit.store.note_hold(approval.approval_id, event.principal or "", taken.minute)
    give_key_to_hold(unit, event, asked.idempotency, approval)
    unit.part = "approvals"
    unit.store.store_hold(approval)
    event = replace(taken.event, caps=capping.told(judged)) if asked.caps else taken.event
    unit.append(event, decision="pending_approval", approval_id=approval.approval_id)
    return HoldInForce(without_body(approval), is_repeated=False)


def _check_new(unit: Transaction, asked: Hold) -> None:
    event, approval = asked.event, asked.approval
    of_call = (event.session_id, event.action_id, event.request_hash)
    if of_call != (approval.session_id, approval.action_id, approval.request_hash):
        raise NotAllowed("the hold of another call")
    if (approval.principal, approval.epoch) != (event.principal, asked.epoch):
        raise NotAllowed("the hold of another principal, or of another epoch")
    if summary_of(approval.body).plan.principal != approval.principal:
        raise NotAllowed("the plan of another principal")
    kept = kept_of(approval)
    if kept.caps != asked.caps:
        raise NotAllowed("other caps than those of the hold")
    if event.quorum != (None if kept.quorum is None else shown_quorum(kept.quorum)):
        raise NotAllowed("another quorum than that of the hold")
    if (approval.state, approval.holder, approval.outcome) != (PENDING, None, "{}"):
        raise NotAllowed("a hold that is decided already")
    if not 0 <= approval.created_at <= approval.expires_at <= unit.now + TTL_SECONDS + SKEW_SECONDS:  # nor is one NaN
        raise NotAllowed("a hold that lasts too long, or with times that no clock shows")
    if unit.store.hold(approval.approval_id) is not None:
        raise NotAllowed("the id of another hold")
