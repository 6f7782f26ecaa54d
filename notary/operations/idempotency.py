"""Calls that are made again under the same `Idempotency-Key`: which outcome they are answered with, and its evidence.

A call is found by principal, action and key, and is the same if its request has the same hash. Guarantees that a call
which may have an effect is never opened a second time under its key: a call whose end is not known is answered so.
Policy has allowed or held the call by now: the front asks with a key only then.
"""

import math

from msgspec.structs import replace

from ipc.approvals import APPROVED, CLAIMED, DENIED, EXPIRED, FAILED, PENDING
from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import AuditEvent
from ipc.messages.calling import code_of_failure
from ipc.operations.calls import CallKey, Closed, GrantTerms, Refusal, RepeatedCall
from ipc.operations.idempotency import ReadKeptOutput
from notary.ledger.intents import OpenIntent
from notary.operations.refusing import refused, without_body, write_refusal
from notary.reading.queries import intent_id_of_approval
from notary.store.call_keys import MAX_KEYS, KeyedCall, KeyedEnd, name_of
from notary.store.contract import as_of
from notary.store.keeping import LONGEST_CALL_SECONDS
from notary.store.outcomes import outcome_of
from notary.units.performing import performs
from notary.units.transaction import ENDED_SECONDS, Transaction

FULL_SECONDS = 3600
"""The longest `Retry-After` for a principal with too many keys."""
UNKNOWN = "evidence_persistence_failed"
"""Error code of an approval whose call may have run."""


def repeated(unit: Transaction, event: AuditEvent, asked: CallKey | None) -> RepeatedCall | Refusal | None:
    """The answer to a call that was made before under its key, with its event; None for a new call.

    A Refusal if its principal has too many keys.
    """
    answer = known(unit, event, asked)
    if answer is not None or asked is None:
        return answer
    principal = event.principal or ""
    if unit.store.keyed.keys_of(principal, unit.now) >= MAX_KEYS:
        refusal = refused(unit, event, "too_many_idempotency_keys", f"{MAX_KEYS} keys of {principal} are kept")
        return replace(refusal, retry_after=math.ceil(min(FULL_SECONDS, _seconds(unit))))
    return None


def known(unit: Transaction, event: AuditEvent, asked: CallKey | None) -> RepeatedCall | None:
    """The answer to a call that the front refuses, with its event, if it was made before under its key."""
    if asked is None:
        return None
    unit.part = "store"
    answer = _known(unit, event, asked)
    if answer is not None:
        repeat = _event_of(event, answer)
        if repeat.decision == "allow":  # the values are those of the first call, and would be summed twice
            unit.kept = None
        write_refusal(unit, repeat)
    return answer


def give_key(unit: Transaction, event: AuditEvent, asked: CallKey | None, terms: GrantTerms, intent_id: str) -> None:
    """The call that is opened now has the key."""
    if asked is not None:
        until = unit.now + terms.timeout_seconds + ENDED_SECONDS
        _give(unit, event, asked, intent_id, until, until + _seconds(unit))


def give_key_to_hold(unit: Transaction, event: AuditEvent, asked: CallKey | None, held: ApprovalRecord) -> None:
    """The call that is held has the key, as long as it may wait and run, and then as long as any other."""
    if asked is not None:
        expires_at = held.expires_at + LONGEST_CALL_SECONDS + _seconds(unit)
        _give(unit, event, asked, held.approval_id, held.expires_at, expires_at)


def keep_end(unit: Transaction, intent: OpenIntent, closed: Closed, output: str | None) -> None:
    """A call has its receipt: keep its end for calls that repeat it, and its output if its action says so."""
    if intent.keyed is None:
        return
    if closed.failure is not None and closed.failure.may_have_run == "no":
        _end(unit, intent, KeyedEnd())  # it may be made again under its key
        return
    has_output = intent.keyed and output is not None and closed.kind == "success"
    _end(unit, intent, KeyedEnd(closed, has_output=has_output, trace_id=intent.event.trace_id or ""))
    if has_output and output is not None:
        unit.store.keyed.keep_output(intent.call_id, intent.event.principal or "", output, unit.now)


def keep_resolved(unit: Transaction, intent: OpenIntent | None, outcome: str) -> None:
    """An operator says whether the call has happened."""
    if intent is not None and intent.keyed is not None and outcome != "unknown":
        _end(unit, intent, KeyedEnd(has_happened=outcome == "happened"))


def keep_withdrawn(unit: Transaction, intent: OpenIntent) -> None:
    """Let the call be made again under its key: no part of it was executed."""
    if intent.keyed is not None:
        _end(unit, intent, KeyedEnd())


@performs(ReadKeptOutput)
def read_kept_output(unit: Transaction, asked: ReadKeptOutput) -> str | None:
    """See ReadKeptOutput."""
    unit.part = "store"
    return unit.store.keyed.output_of(asked.call_id)


def _give(unit: Transaction, event: AuditEvent, asked: CallKey, call_id: str, until: float, expires_at: float) -> None:
    unit.part = "store"
    call = KeyedCall(call_id, event.trace_id or "", event.request_hash or "", until, expires_at)
    unit.store.keyed.give_key(_name(event, asked), event.principal or "", call)


def _end(unit: Transaction, intent: OpenIntent, ended: KeyedEnd) -> None:
    unit.part = "store"
    expires_at = unit.now + intent.terms.timeout_seconds + ENDED_SECONDS + _seconds(unit)
    unit.store.keyed.end(intent.call_id, ended, expires_at)


def _seconds(unit: Transaction) -> float:
    return unit.state.settings.limits.idempotency_seconds


def _name(event: AuditEvent, asked: CallKey) -> str:
    return name_of(event.principal or "", event.action_id or "", asked.key)


def _known(unit: Transaction, event: AuditEvent, asked: CallKey) -> RepeatedCall | None:
    call = unit.store.keyed.of_key(_name(event, asked))
    if call is None or call.expires_at <= unit.now:
        return None
    answer = _answer_of(unit, call)
    if answer is not None and call.request_hash != event.request_hash:
        return RepeatedCall(call.call_id, "idempotency_key_reused")
    return answer


def _answer_of(unit: Transaction, call: KeyedCall) -> RepeatedCall | None:
    """None for a call that had no effect: it is made anew."""
    ended = unit.store.keyed.end_of(call.call_id)
    if ended is not None:
        return _answer_of_end(unit, call.call_id, ended)
    if call.call_id.startswith("apr_"):
        return _answer_of_hold(unit, call.call_id)
    if unit.now < call.until or unit.may_still_end(call.call_id):
        return RepeatedCall(call.call_id, "call_in_progress")
    return _without_receipt(unit, call.call_id, "outcome_unknown")


def _answer_of_end(unit: Transaction, call_id: str, ended: KeyedEnd) -> RepeatedCall | None:
    closed = ended.closed
    if closed is None:
        return _without_receipt(unit, call_id, "already_executed") if ended.has_happened else None
    code = "already_executed" if closed.kind == "success" and not ended.has_output else None
    return RepeatedCall(call_id, code, ended.trace_id, closed)


def _answer_of_hold(unit: Transaction, approval_id: str) -> RepeatedCall | None:
    unit.part = "approvals"
    stored = unit.store.hold_state(approval_id)
    if stored is None:
        return _without_receipt(unit, approval_id, "outcome_unknown")
    held, outcome = as_of(stored, unit.epoch), outcome_of(stored)
    if held.state == EXPIRED or (held.state == PENDING and held.expires_at <= unit.now):
        return RepeatedCall(approval_id, "approval_expired")
    if held.state in (PENDING, CLAIMED):
        return RepeatedCall(approval_id, held=without_body(held))
    if held.state == DENIED:
        return RepeatedCall(approval_id, "policy_denied", deny_reason=outcome.deny_reason)
    if held.state == APPROVED:  # the call that was held had no key; its receipt tells how it ended
        return RepeatedCall(approval_id, "already_executed", closed=_with_receipt(outcome.receipt_id or ""))
    assert held.state == FAILED, "no other state"
    answer = _without_receipt(unit, approval_id, "outcome_unknown")
    return answer if outcome.error_code == UNKNOWN or answer.intent_id is not None else None


def _without_receipt(unit: Transaction, call_id: str, code: str) -> RepeatedCall:
    """The answer that names the intent, which an operator resolves. A held call may have its intent on another host."""
    if not call_id.startswith("apr_"):
        return RepeatedCall(call_id, code, intent_id=call_id)
    unit.settle()
    return RepeatedCall(call_id, code, intent_id=intent_id_of_approval(unit.connection, call_id))


def _with_receipt(receipt_id: str) -> Closed:
    return Closed("", receipt_id, "success", "success", "", {}, None)


def _event_of(event: AuditEvent, answer: RepeatedCall) -> AuditEvent:
    """The event of a call that is answered with the outcome of an earlier one."""
    code, decision = answer.code, "deny"
    if answer.held is not None:
        decision = "pending_approval"
    elif code is None and answer.closed is not None:
        decision = "allow"
        if answer.closed.kind != "success":
            code, decision = code_of_failure(answer.closed.outcome), "error"
    approval_id = answer.call_id if answer.call_id.startswith("apr_") else None
    return replace(
        event, decision=decision, error_code=code, deny_reason=answer.deny_reason, approval_id=approval_id,
        reason=f"the key is that of {answer.call_id}", is_repeated=True,
    )  # fmt: skip
