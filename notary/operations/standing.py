"""Standing approvals: added, revoked, ended, and counted with the call that one lets run.

SECURITY: a front says that a call is covered, and a row says which text was signed. All that decides is read from the
signed text, whose key must be that of an operator who may approve now. A standing approval lifts a hold that one
operator could approve, never a denial, and never one that needs several operators.
"""

from typing import Any, Final

import msgspec

from ipc.configuration.roles import APPROVE_ROLE
from ipc.evidence.events import STANDING_ADDED, STANDING_ENDED, STANDING_REVOKED, AuditEvent
from ipc.keys.signed_approvals import SignatureRefused
from ipc.keys.standing_approvals import StandingTerms, check_ledger, check_standing, told
from ipc.network.loopback import ledger_origin, own_addresses
from ipc.operations.calls import Open
from ipc.operations.holds import Hold
from ipc.operations.operation import Operation
from ipc.operations.standing import (
    AddStanding,
    FindStanding,
    Lifted,
    ListStanding,
    RevokeStanding,
    StandingInForce,
    StandingRow,
    StandingUse,
)
from ipc.process.clock import iso
from ipc.settings import OperatorSettings
from ipc.texts.identifiers import new
from ipc.texts.pointers import Values
from notary.ledger.intents import StandingWord
from notary.operations.allowed import check_event
from notary.operations.signed import PATIENCE_SECONDS
from notary.signing.operators import check_owner, operator_named
from notary.signing.standing_texts import checked_standing, tell_once
from notary.store.outcomes import kept_of
from notary.store.standing import KEPT_REVOKED_SECONDS, MAX_OF_OPERATOR, MAX_REVOKED, MAX_STANDING
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

TIME_OVER: Final = "its time is over"
REVOKED: Final = "everything of before was revoked"
_values = msgspec.json.Decoder(Values).decode


class EndStanding(Operation[None], frozen=True):
    """Asked by the notary itself: end the standing approvals whose time is over."""


@performs(AddStanding, writes=True)
def add_standing(unit: Transaction, asked: AddStanding) -> StandingInForce | None:
    """See AddStanding. Raises NotAllowed."""
    check_event(asked.event, STANDING_ADDED, frozenset({"allow"}))
    settings = unit.state.settings
    try:
        terms, operator, jkt = _signed(unit, asked.signature)
        addresses, origin = own_addresses(settings), ledger_origin(settings)
        check_standing(terms, addresses, origin, asked.operator, unit.now, PATIENCE_SECONDS)
    except SignatureRefused as refused:
        raise NotAllowed(f"a standing approval that does not hold: {refused}") from None
    if (asked.event.principal, asked.event.operator_sender_binding) != (f"operator:{operator.name}", jkt):
        raise NotAllowed("a standing approval of another operator than its event's")
    unit.part = "approvals"
    known = unit.store.standing.get(terms.standing_id)
    if known is not None and known.signature == asked.signature and _is_in_force(unit, known):
        return StandingInForce(known, unit.store.standing.calls(known.standing_id))
    if known is not None or not _has_room(unit, operator.name):
        return None
    row = StandingRow(
        terms.standing_id, terms.action_id, terms.principal, terms.until, unit.epoch, operator.name, iso(unit.now),
        asked.signature,
    )  # fmt: skip
    unit.store.standing.put(row)
    _append(unit, asked.event, row, change=told(terms), standing_signature=asked.signature)
    return StandingInForce(row, 0)


@performs(RevokeStanding, writes=True)
def revoke_standing(unit: Transaction, asked: RevokeStanding) -> StandingInForce | None:
    """See RevokeStanding. Raises NotAllowed."""
    check_event(asked.event, STANDING_REVOKED, frozenset({"allow"}))
    unit.part = "approvals"
    row = unit.store.standing.get(asked.standing_id)
    if row is None or not _is_in_force(unit, row):
        return None
    return _end(unit, row, asked.event)


@performs(ListStanding)
def list_standing(unit: Transaction, _asked: ListStanding) -> tuple[StandingInForce, ...]:
    """See ListStanding."""
    unit.part = "approvals"
    rows = [row for row in unit.store.standing.listed() if _is_in_force(unit, row) and _is_signed(row)]
    return tuple(StandingInForce(row, unit.store.standing.calls(row.standing_id)) for row in rows)


@performs(FindStanding)
def find_standing(unit: Transaction, asked: FindStanding) -> str | None:
    """See FindStanding. Raises NotAllowed."""
    row = _serving(unit, asked.action_id, asked.principal, asked.owner, asked.policy_input)
    return None if row is None else row.standing_id


@performs(EndStanding, writes=True)
def end_standing(unit: Transaction, _asked: EndStanding) -> None:
    """See EndStanding."""
    unit.part = "approvals"
    for standing_id in unit.store.standing.due(unit.now):
        row = unit.store.standing.get(standing_id)
        if row is None:
            continue
        if not row.is_ended:
            _end(unit, row, _own_event(TIME_OVER if row.epoch == unit.epoch else REVOKED))
        unit.part = "approvals"
        unit.store.standing.forget(row)


def end_all(unit: Transaction, why: str) -> None:
    """Everything was revoked: end every standing approval, with an event each."""
    unit.part = "approvals"
    for row in unit.store.standing.listed():
        if not row.is_ended:
            _end(unit, row, _own_event(why))


def lifted(unit: Transaction, asked: Hold) -> Lifted | None:
    """Look for the standing approval that covers a call before it is held; None where it has to wait.

    A call that waits already goes on waiting: a person may still approve it, and it would run twice.
    """
    event, kept = asked.event, kept_of(asked.approval)
    if kept.quorum is not None:
        return None
    row = _serving(unit, event.action_id or "", event.principal or "", event.owner, kept.plan.policy_input)
    if row is None:
        return None
    session_id, action_id, request_hash = event.session_id or "", event.action_id or "", event.request_hash or ""
    if unit.store.pending_hold(session_id, action_id, request_hash, unit.moment) is not None:
        return None
    return Lifted(row.standing_id)


def used(unit: Transaction, asked: Open, use: StandingUse) -> StandingWord | None:
    """The standing approval by which this call is opened; None where it does not cover the call any more."""
    event = asked.event
    unit.part = "approvals"
    row = unit.store.standing.get(use.standing_id)
    values = _decoded(use.policy_input)
    if row is None or not _serves(unit, row, event.action_id or "", event.principal or "", event.owner, values):
        return None
    return StandingWord(row.standing_id, row.signature)


def count_use(unit: Transaction, word: StandingWord) -> None:
    """Count the call that is opened by it."""
    unit.part = "approvals"
    unit.store.standing.count(word.standing_id)


def give_back_use(unit: Transaction, word: StandingWord | None) -> None:
    """The call is not executed, and counts no more."""
    if word is not None:
        unit.part = "approvals"
        unit.store.standing.uncount(word.standing_id)


def _serving(
    unit: Transaction, action_id: str, principal: str, owner: str | None, policy_input: str
) -> StandingRow | None:  # fmt: skip
    unit.part = "approvals"
    rows = unit.store.standing.of_call(action_id, principal)
    values = _decoded(policy_input) if rows else {}
    return next((row for row in rows if _serves(unit, row, action_id, principal, owner, values)), None)


def _serves(
    unit: Transaction, row: StandingRow, action_id: str, principal: str, owner: str | None, values: Values
) -> bool:  # fmt: skip
    """True if it covers this call of this owner, and has a call left."""
    if not _is_in_force(unit, row):
        return False
    try:
        terms, operator, _ = _signed(unit, row.signature)
        origin = ledger_origin(unit.state.settings)
        if terms.aud[1] != origin and not unit.store.is_in_ledger:
            return False  # it is for calls of another gateway, which shares the store
        check_ledger(terms, own_addresses(unit.state.settings), origin)
    except SignatureRefused as refused:
        tell_once(row.standing_id, str(refused))
        return False
    if terms.standing_id != row.standing_id or not terms.covers(action_id, principal, values, unit.now):
        return False
    if operator.owner is not None and operator.owner == owner:
        return False
    return terms.max_calls is None or unit.store.standing.calls(row.standing_id) < terms.max_calls


def _signed(unit: Transaction, signature: str) -> tuple[StandingTerms, OperatorSettings, str]:
    """The terms, the operator who signed them and may approve now, and the key's thumbprint. Raises
    SignatureRefused."""
    signed = checked_standing(signature)
    operator = operator_named(signed.terms.operator, unit.state.settings.operators)
    check_owner(signed.text, operator)
    if APPROVE_ROLE not in operator.roles:
        raise SignatureRefused("its operator may not approve")
    return signed.terms, operator, signed.text.jkt


def _has_room(unit: Transaction, operator: str) -> bool:
    """True if one more by this operator may stand."""
    rows = unit.store.standing.listed()
    in_force = [row.operator for row in rows if _is_in_force(unit, row)]
    revoked = sum(row.is_ended and row.operator == operator for row in rows)
    return len(in_force) < MAX_STANDING and in_force.count(operator) < MAX_OF_OPERATOR and revoked < MAX_REVOKED


def _is_signed(row: StandingRow) -> bool:
    """True for a row with a text that a key has signed: an operator is shown no other terms."""
    try:
        checked_standing(row.signature)
    except SignatureRefused as refused:
        tell_once(row.standing_id, str(refused))
        return False
    return True


def _is_in_force(unit: Transaction, row: StandingRow) -> bool:
    return not row.is_ended and row.epoch == unit.epoch and unit.now < row.until


def _end(unit: Transaction, row: StandingRow, event: AuditEvent) -> StandingInForce:
    ended = msgspec.structs.replace(row, is_ended=True, until=min(row.until, int(unit.now) + KEPT_REVOKED_SECONDS))
    calls = unit.store.standing.calls(row.standing_id)
    unit.store.standing.put(ended)
    _append(unit, event, row, change={"principal": row.principal, "until": row.until, "calls": calls})
    unit.part = "approvals"
    return StandingInForce(ended, calls)


def _append(unit: Transaction, event: AuditEvent, row: StandingRow, **more: Any) -> None:
    unit.append(event, action_id=row.action_id, standing_id=row.standing_id, approved_by=row.operator, **more)


def _own_event(reason: str) -> AuditEvent:
    return AuditEvent(
        event_type=STANDING_ENDED, trace_id=new("trc_"), principal="gateway", decision="allow", reason=reason
    )  # fmt: skip


def _decoded(policy_input: str) -> Values:
    try:
        return _values(policy_input)
    except msgspec.MsgspecError:
        raise NotAllowed("values that no call has") from None
