"""UseProof and Open: a proof is used once; a call has its intent before it is dispatched."""

from msgspec.structs import replace

from ipc.caps import CapReservation
from ipc.evidence.events import AuditEvent
from ipc.operations.calls import (
    Approver,
    Assign,
    Closed,
    Entered,
    HeldByCap,
    NoSuchWorker,
    Open,
    Refusal,
    RepeatedCall,
    UseProof,
)
from ipc.process.clock import iso
from ipc.texts.identifiers import new
from notary.ledger.intents import OpenIntent
from notary.operations import capping
from notary.operations.allowed import check_claimed, check_opening, check_own, check_worker
from notary.operations.charging import charged
from notary.operations.closing import Lost, lose_call
from notary.operations.idempotency import give_key, repeated
from notary.operations.refusing import checked, is_used
from notary.operations.standing import count_use, used
from notary.units.performing import performs
from notary.units.tasks import NotAllowed, NotOpen, Started
from notary.units.transaction import Transaction


@performs(UseProof, writes=True)
def enter(unit: Transaction, asked: UseProof) -> Entered:
    """See UseProof."""
    is_fresh = not is_used(unit, asked.proof)
    return Entered(is_fresh, unit.epoch)


@performs(Open, writes=True)
def open_call(unit: Transaction, asked: Open) -> Started | Refusal | NoSuchWorker | Closed | HeldByCap | RepeatedCall:
    """See Open. Raises NotAllowed.

    Asked again, of the notary after one that was killed, it has the word repeated.
    """
    event, terms, approver = asked.event, asked.terms, asked.approver
    if unit.is_known(asked.intent_id):
        return _again(unit, asked)
    check_opening(unit, asked)
    keyed = None if asked.idempotency is None else asked.idempotency.keeps_output
    if approver is not None:
        approver, keyed = check_claimed(unit, approver, terms.plan_hash)
    if asked.worker_id not in unit.state.workers:
        return NoSuchWorker()
    if approver is not None:
        event = approved(event, approver)
    word = None
    if asked.standing is not None:
        word = used(unit, asked, asked.standing)
        if word is None:
            return HeldByCap()
    judged = capping.NO_CAPS
    if approver is None and asked.caps:
        judged = capping.judge(unit, event.action_id or "", asked.caps)
        if judged.is_held and judged.denial is None and word is None:
            return HeldByCap()
    stale = "invalid_lease" if approver is None else "plan_integrity"
    refusal = checked(unit, event, asked.proof, terms.epoch, stale)
    if refusal is not None:
        return refusal
    minute: int | None = None
    reserved: tuple[CapReservation, ...] = ()
    if approver is None:  # a call that was held was charged then, and has its key with its hold
        answer = repeated(unit, event, asked.idempotency)
        if answer is not None:
            return answer
        refusal = capping.denied_by_cap(unit, event, judged)
        if refusal is not None:
            return refusal
        taken = charged(unit, event, asked)
        if isinstance(taken, Refusal):
            return taken
        event, minute = replace(taken.event, caps=capping.told(judged)) if asked.caps else taken.event, taken.minute
        reserved = capping.reserve(unit, event.action_id or "", asked.caps, unit.now)
        give_key(unit, event, asked.idempotency, terms, asked.intent_id)
        if word is not None:  # the event of a call that is refused or repeated names none: none was used
            count_use(unit, word)
            event = replace(event, standing_id=word.standing_id)
    elif asked.caps:
        reserved = capping.take_over(unit, approver.approval_id)
    unit.part = "ledger"
    intent = OpenIntent(
        asked.intent_id, new("grant_"), iso(unit.now), event, terms, asked.has_budget, approver, unit.front_id,
        unit.number, asked.worker_id, minute, reserved, keyed, word,
    )  # fmt: skip
    grant = unit.state.signers.grants.sign(
        terms, event.trace_id or "", intent.grant_id, now=unit.now, approver=approver
    )  # fmt: skip
    unit.open(intent, grant)
    return Started(intent)


@performs(Assign, writes=True)
def assign_call(unit: Transaction, asked: Assign) -> Started | NoSuchWorker | Closed:
    """See Assign. Raises NotOpen, NotAllowed.

    Asked again, of a notary that did not take the call back itself, it can't be known whether a worker has begun it.
    """
    intent = unit.intent(asked.intent_id)
    if intent is None:
        raise NotOpen("a call that is not open")
    check_own(unit, intent)
    check_worker(unit, asked.worker_id)
    if asked.intent_id not in unit.state.unbegun:
        if unit.is_of_this_life(asked.intent_id):
            raise NotAllowed("a call that another worker has")
        return lose_call(unit, Lost(intent.intent_id, "the notary ended while it passed to another worker"))
    if asked.worker_id not in unit.state.workers:
        return NoSuchWorker()
    unit.give(asked.worker_id)
    return Started(replace(intent, worker_id=asked.worker_id))


def _again(unit: Transaction, asked: Open) -> Started | Closed:
    """Answer an Open that the killed notary was asked before. Raises NotAllowed if it was not asked.

    The worker knows whether it runs the call, has run it, or never had it. A worker that is gone may have begun it.
    """
    intent = None if unit.is_of_this_life(asked.intent_id) else unit.intent(asked.intent_id)
    if intent is None or (intent.front_id, intent.number) != (unit.front_id, unit.number):
        raise NotAllowed("the id of another intent")
    if intent.worker_id in unit.state.workers:
        return Started(intent, is_repeated=True)
    return lose_call(unit, Lost(intent.intent_id, "it ended together with the notary"))


def approved(event: AuditEvent, approver: Approver) -> AuditEvent:
    """An event that tells who approved the call."""
    return replace(
        event, approval_id=approver.approval_id, approved_by=approver.approved_by,
        operator_sender_binding=approver.operator_jkt, operator_proof_jti=approver.operator_proof_jti,
    )  # fmt: skip
