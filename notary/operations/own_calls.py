"""ListOwnCalls: what became of the calls of one principal and key.

Looks at a bounded number of events of the principal, by their index, and at the few intents without an end. A call is
listed once: by the event that its own key proved.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from contract.calls import CallState
from ipc.evidence import events
from ipc.evidence.events import AuditEvent
from ipc.evidence.records import EventQuery
from ipc.operations.own_calls import ListOwnCalls, OwnCall, OwnCalls
from ipc.process.clock import parse_iso
from notary.ledger.intents import OpenIntent, without_end
from notary.reading import queries
from notary.reading.summaries import summary_in
from notary.units.performing import performs
from notary.units.transaction import Transaction

EVENTS_AT_ONCE: Final = 2000
"""Events of the principal that one page looks at. A page that finds none of the key in so many is the last one."""
RESOLVED_AT_ONCE: Final = 200
"""Intents that operators resolved last, of all principals."""
MAX_EVENTS_OF_CALL: Final = 50
_RESOLVED: Final[dict[str, CallState]] = {"happened": "executed", "did_not_happen": "failed", "unknown": "unknown"}
_MILLISECOND: Final = 0.001
CallPosition = tuple[str, str]
"""Time and trace id of a call. Calls that are opened together have the same time, so that alone it is no position."""
_decode = msgspec.json.Decoder(AuditEvent).decode


@performs(ListOwnCalls, settles=True, is_paced=True)
def list_own_calls(unit: Transaction, asked: ListOwnCalls) -> OwnCalls:
    """See ListOwnCalls."""
    unit.settle()
    open_ones = {
        intent.event.trace_id or "": intent
        for intent in without_end(unit.connection, asked.principal)
        if intent.event.key_thumbprint == asked.key_thumbprint or intent.approver is not None
    }
    position: CallPosition | None = None
    if asked.after is not None:
        at = _time_of(unit, asked, open_ones)
        if at is None:
            return OwnCalls([])
        position = (at, asked.after)
    calls: list[OwnCall] = []
    looked_at, has_more = 0, False
    for event in _events(unit, asked, position):
        has_more = len(calls) >= asked.limit and event.timestamp < calls[-1].at
        if has_more:
            break
        looked_at += 1
        if _is_own(event, asked.key_thumbprint) and _is_behind(event.timestamp, event.trace_id, position):
            calls.append(_call_of(unit, event, open_ones))
    has_more = has_more or (bool(calls) and looked_at == EVENTS_AT_ONCE)
    oldest = calls[-1].at if has_more else ""
    listed = {call.trace_id for call in calls}
    for call in [*_without_end(unit, open_ones), *_resolved(unit, asked, open_ones)]:
        if call.trace_id not in listed and call.at >= oldest and _is_behind(call.at, call.trace_id, position):
            calls.append(call)
    calls.sort(key=lambda call: (call.at, call.trace_id), reverse=True)
    has_more = has_more or len(calls) > asked.limit
    calls = calls[: asked.limit]
    return OwnCalls(calls, calls[-1].trace_id if has_more else None)


def _is_behind(at: str, trace_id: str | None, position: CallPosition | None) -> bool:
    return position is None or (at, trace_id or "") < position


def _time_of(unit: Transaction, asked: ListOwnCalls, open_ones: dict[str, OpenIntent]) -> str | None:
    """When the call that `after` names is listed. None: the caller has no such call."""
    intent = open_ones.get(asked.after or "")
    if intent is not None and intent.approver is None:
        return intent.started_at
    found = queries.events_of(unit.connection, EventQuery(trace_id=asked.after, limit=MAX_EVENTS_OF_CALL))
    own = [event for event in map(_decode, found) if _is_own(event, asked.key_thumbprint)]
    return own[-1].timestamp if own else None


def _events(unit: Transaction, asked: ListOwnCalls, position: CallPosition | None) -> Iterator[AuditEvent]:
    """Events of the principal, the newest first, from the millisecond of this position on."""
    bound = None if position is None else parse_iso(position[0]) + _MILLISECOND
    query = EventQuery(principal=asked.principal, before=bound, limit=EVENTS_AT_ONCE)
    statement, values = queries.event_statement(query)
    for (data,) in unit.connection.execute(statement, values):
        yield _decode(bytes(data))


def _is_own(event: AuditEvent, key_thumbprint: str) -> bool:
    """True for the event by which a call of this key is listed. Refusals that are counted in one event are not."""
    if event.key_thumbprint != key_thumbprint or event.attempts is not None or event.is_repeated:
        return False
    return event.event_type in (events.ACTION_CALL, events.INTENT_RESOLVED)


def _without_end(unit: Transaction, open_ones: dict[str, OpenIntent]) -> list[OwnCall]:
    """Calls that were dispatched without a hold. Those with one are listed by their hold."""
    return [_running(unit, intent) for intent in open_ones.values() if intent.approver is None]


def _resolved(unit: Transaction, asked: ListOwnCalls, open_ones: dict[str, OpenIntent]) -> list[OwnCall]:
    """Calls whose outcome an operator found out: the event of that is the operator's, not the principal's."""
    query = EventQuery(event_type=events.INTENT_RESOLVED, limit=RESOLVED_AT_ONCE)
    return [
        _call_of(unit, event, open_ones)
        for event in map(_decode, queries.events_of(unit.connection, query))
        if _is_own(event, asked.key_thumbprint)
        and queries.principal_of_intent(unit.connection, event.intent_id or "") == asked.principal
    ]


def _call_of(unit: Transaction, event: AuditEvent, open_ones: dict[str, OpenIntent]) -> OwnCall:
    last, state = event, _state_of(event)
    if state == "held" and event.trace_id is not None:
        query = EventQuery(trace_id=event.trace_id, limit=MAX_EVENTS_OF_CALL)
        later = [_decode(data) for data in queries.events_of(unit.connection, query)]
        last, state = _decided(later, event)
        if state in ("held", "running") and (intent := open_ones.get(event.trace_id)) is not None:
            state = "running" if unit.may_still_end(intent.intent_id) else "unknown"
    return OwnCall(
        event.trace_id or "", state, event.timestamp, event.action_id, event.request_hash, last.error_code,
        last.receipt_id, event.approval_id, summary_in(unit.connection, event, event.intent_id or event.event_id or ""),
    )  # fmt: skip


def _state_of(event: AuditEvent) -> CallState:
    """The state that one event tells."""
    if event.event_type == events.INTENT_RESOLVED:
        return _RESOLVED.get((event.change or {}).get("outcome", ""), "unknown")
    if event.decision == "pending_approval":
        return "held"
    if event.decision == "allow":
        return "executed"
    if event.receipt_id is not None:
        return "failed"
    return "denied" if event.error_code == "policy_denied" else "refused"


def _decided(found: list[AuditEvent], held: AuditEvent) -> tuple[AuditEvent, CallState]:
    """The event that ended a held call, and the state of the call. `found` are newest first."""
    for event in found:
        if event.event_type == events.APPROVAL_DENIED:
            return event, "denied"
        if event.event_type == events.APPROVAL_EXPIRED:
            return event, "expired"
        if event.event_type == events.APPROVAL_GRANTED:
            return held, "running"
        if event.event_type in (events.ACTION_CALL, events.INTENT_RESOLVED):
            return event, _state_of(event)
    return held, "held"


def _running(unit: Transaction, intent: OpenIntent) -> OwnCall:
    """A call without an end."""
    event = intent.event
    state: CallState = "running" if unit.may_still_end(intent.intent_id) else "unknown"
    summary = summary_in(unit.connection, event, intent.intent_id)
    return OwnCall(
        event.trace_id or "", state, intent.started_at, event.action_id, event.request_hash, summary=summary
    )  # fmt: skip
