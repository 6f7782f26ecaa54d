"""Caps of calls: judged and reserved with the operation that opens or holds a call, given back when it did not happen.

A refusal reserves nothing. A hold keeps its reservations, in the steps in which it ends at the latest; the call that is
approved takes them over. A call whose outcome is unknown keeps them, marked as unknown.
"""

from msgspec.structs import replace

from ipc.approvals import CLAIMED, PENDING
from ipc.backends.store import ApprovalRecord
from ipc.caps import MAX_CAPS, CapReading, CapReservation, CapsJudged, CapSum, CapUse, end_of_step, text_of, units_of
from ipc.evidence.events import AuditEvent
from ipc.operations.calls import Refusal
from ipc.operations.caps import LISTED_SUBJECTS, CapSums, ReadCaps, ReadHeldCaps, SumCap
from notary.ledger.intents import waiting_contexts
from notary.operations.refusing import refused
from notary.store.caps import (
    HELD_SECONDS,
    CapAmount,
    CapCounter,
    gone_at,
    reservations_of,
    text_of_reservations,
)
from notary.store.outcomes import kept_of
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

RULE = "cap"
NO_ROOM = "the cap on {} counts as many subjects as it may"
OVER = "the cap on {} would be exceeded: at most {} in {} s for {}"


NO_CAPS = CapsJudged((), False, None)


def judge(unit: Transaction, action_id: str, caps: tuple[CapUse, ...]) -> CapsJudged:
    """How these caps would stand with this call. Raises NotAllowed for a use that no front makes."""
    if not caps:
        return NO_CAPS
    if len(caps) > MAX_CAPS:
        raise NotAllowed("more caps than an action may have")
    unit.part = "budget"
    readings, is_held, denial = [], False, None
    for use in caps:
        units, hold_above, deny_above = _units(use)
        counter = _counter(action_id, use)
        total = unit.store.caps.amount(counter, unit.now).total
        with_this = total + units
        is_held = is_held or (hold_above is not None and with_this > hold_above)
        if denial is None and deny_above is not None and with_this > deny_above:
            denial = OVER.format(use.pointer, use.deny_above, use.window_seconds, use.per)
        elif denial is None and not unit.store.caps.has_room(counter, unit.now):
            denial = NO_ROOM.format(use.pointer)
        readings.append(_reading(use, total, with_this))
    return CapsJudged(tuple(readings), is_held, denial)


def denied_by_cap(unit: Transaction, event: AuditEvent, judged: CapsJudged) -> Refusal | None:
    """Write the event of a call that a cap denies."""
    if judged.denial is None:
        return None
    event = replace(event, policy_rule=RULE, deny_reason=judged.denial, caps=told(judged))
    return replace(refused(unit, event, "policy_denied"), deny_reason=judged.denial)


def told(judged: CapsJudged) -> tuple[dict[str, str], ...] | None:
    """The caps in an event."""
    return tuple(
        {"pointer": one.use.pointer, "per": one.use.per, "total": one.total, "with_this": one.with_this}
        for one in judged.readings
    ) or None  # fmt: skip


def reserve(unit: Transaction, action_id: str, caps: tuple[CapUse, ...], at: float) -> tuple[CapReservation, ...]:
    """Count a call that is opened, or that may be opened until then."""
    reserved = tuple(CapReservation(use, end_of_step(at, use.window_seconds)) for use in caps)
    if reserved:
        unit.part = "budget"
    for one in reserved:
        unit.store.caps.add(_counter(action_id, one.use), one.until, units_of(one.use.value))
    return reserved


def reserve_hold(
    unit: Transaction, approval: ApprovalRecord, caps: tuple[CapUse, ...]
) -> None:  # fmt: skip
    """Count a call that waits for a person."""
    reserved = reserve(unit, approval.action_id, caps, approval.expires_at + HELD_SECONDS)
    if reserved:
        last = max(gone_at(_counter(approval.action_id, one.use), one.until) for one in reserved)
        unit.store.caps.keep_reserved(approval.approval_id, text_of_reservations(reserved), last)


def take_over(unit: Transaction, approval_id: str) -> tuple[CapReservation, ...]:
    """The reservations of a hold, which belong to its call from now on."""
    reserved = _of_hold(unit, approval_id)
    if reserved:
        unit.store.caps.drop_reserved(approval_id)
    return reserved


def give_back(unit: Transaction, action_id: str, reserved: tuple[CapReservation, ...]) -> None:
    """The call did not happen."""
    if reserved:
        unit.part = "budget"
    for one in reserved:
        unit.store.caps.take(_counter(action_id, one.use), one.until, units_of(one.use.value))


def give_back_hold(unit: Transaction, approval: ApprovalRecord) -> None:
    """The held call will never be opened. Its reservations are given back once, and never after it was opened."""
    if kept_of(approval).caps:
        give_back(unit, approval.action_id, take_over(unit, approval.approval_id))


def mark_unknown(unit: Transaction, action_id: str, reserved: tuple[CapReservation, ...]) -> None:
    """It is not known whether the call happened: it counts."""
    if reserved:
        unit.part = "budget"
    for one in reserved:
        unit.store.caps.mark(_counter(action_id, one.use), one.until, units_of(one.use.value))


@performs(ReadCaps)
def read_caps(unit: Transaction, asked: ReadCaps) -> CapsJudged:
    """See ReadCaps. Raises NotAllowed."""
    return judge(unit, asked.action_id, asked.caps)


@performs(ReadHeldCaps)
def read_held_caps(unit: Transaction, asked: ReadHeldCaps) -> tuple[CapReading, ...]:
    """See ReadHeldCaps."""
    unit.part = "approvals"
    approval = unit.store.hold_state(asked.approval_id)
    if approval is None or approval.state not in (PENDING, CLAIMED):
        return ()
    readings = []
    for one in _of_hold(unit, asked.approval_id):
        counter = _counter(approval.action_id, one.use)
        with_this = unit.store.caps.amount(counter, unit.now).total
        readings.append(_reading(one.use, max(0, with_this - units_of(one.use.value)), with_this))
    return tuple(readings)


@performs(SumCap, settles=True, is_paced=True)
def sum_cap(unit: Transaction, asked: SumCap) -> CapSums:
    """See SumCap."""
    unit.settle()
    unit.part = "budget"
    cap = CapCounter(asked.action_id, asked.pointer, asked.per, asked.window_seconds, "")
    found = unit.store.caps.subjects(cap, unit.now, asked.after, LISTED_SUBJECTS + 1)
    unresolved = _unresolved(unit) if found else {}
    sums = []
    for subject in found[:LISTED_SUBJECTS]:
        counter = cap._replace(subject=subject)
        amount = unit.store.caps.amount(counter, unit.now)
        if amount.total:
            sums.append(_sum(subject, amount, unresolved.get(counter, 0)))
    return CapSums(tuple(sums), found[LISTED_SUBJECTS - 1] if len(found) > LISTED_SUBJECTS else None)


def _sum(subject: str, amount: CapAmount, unresolved: int) -> CapSum:
    return CapSum(subject, text_of(amount.total), text_of(min(amount.total, amount.unknown + unresolved)))


def _unresolved(unit: Transaction) -> dict[CapCounter, int]:
    """The amounts of calls without an end that no process can still report."""
    amounts: dict[CapCounter, int] = {}
    for intent in waiting_contexts(unit.connection):
        for one in intent.caps:
            counter = _counter(intent.event.action_id or "", one.use)
            if gone_at(counter, one.until) > unit.now and not unit.may_still_end(intent.intent_id):
                amounts[counter] = amounts.get(counter, 0) + units_of(one.use.value)
    return amounts


def _of_hold(unit: Transaction, approval_id: str) -> tuple[CapReservation, ...]:
    unit.part = "budget"
    kept = unit.store.caps.reserved(approval_id)
    return () if kept is None else reservations_of(kept)


def _counter(action_id: str, use: CapUse) -> CapCounter:
    return CapCounter(action_id, use.pointer, use.per, use.window_seconds, use.subject)


def _reading(use: CapUse, total: int, with_this: int) -> CapReading:
    return CapReading(use, text_of(total), text_of(with_this))


def _units(use: CapUse) -> tuple[int, int | None, int | None]:
    """Value, hold_above and deny_above."""
    try:
        hold_above, deny_above = (
            None if text is None else units_of(text) for text in (use.hold_above, use.deny_above)
        )  # fmt: skip
        if use.window_seconds < 1:
            raise ValueError(use.window_seconds)
        return units_of(use.value), hold_above, deny_above
    except ValueError:
        raise NotAllowed("a cap that can't be counted") from None
