"""Rules for the events that a front has written: operations are checked by them before anything is written.

SECURITY: a front talks to the network and may have been taken over. It decides calls. It can't write evidence in the
notary's name, act on intents and claims of another front, or write an event that belongs to another operation.
"""

from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec

from ipc.evidence import events
from ipc.evidence.events import AuditEvent
from ipc.limits import MAX_AHEAD, MAX_CALL_SECONDS
from ipc.operations.calls import Approver, Open
from ipc.texts.foreign_texts import clean_reason
from notary.ledger.intents import OpenIntent
from notary.operations.signed import check_approver
from notary.reading.queries import has_intent_of_approval
from notary.store.contract import is_claimed_by
from notary.store.outcomes import kept_of, outcome_of
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

NOTED: Final[dict[str, frozenset[str]]] = {
    events.LEASE_ISSUED: frozenset({"deny", "error"}),  # Issue writes the event of a lease that was issued
    **{
        event_type: frozenset({"allow", "deny", "error"})
        for event_type in (
            events.ADMIN_DRAIN, events.ADMIN_RELOAD, events.RECEIPT_KEYS_READ, events.DOMAIN_ADDED,
            events.DOMAIN_REMOVED, events.DOMAIN_CLEARED, events.PATH_ADDED, events.PATH_REMOVED, events.PATH_CLEARED,
            events.POLICY_GRANTED, events.POLICY_REVOKED, events.POLICY_ALLOWLIST_ADDED,
            events.POLICY_ALLOWLIST_REMOVED, events.POLICY_THRESHOLD_SET, events.POLICY_THRESHOLD_CLEARED,
            events.POLICY_CAP_SET, events.POLICY_CAP_CLEARED, events.WEBHOOK_TESTED, events.GATEWAY_STARTED,
            events.GATEWAY_STOPPED,
            events.ACTION_ROLLED_BACK,
        )
    },
    events.ACTION_PREVIEWED: frozenset({"allow", "deny", "pending_approval", "error"}),
    events.OPERATOR_AUTH_FAILED: frozenset({"deny"}),
}  # fmt: skip
"""Type of event -> decisions with which WriteEvent writes it. Every other type belongs to an operation of its own."""
REFUSALS: Final = frozenset({"deny", "error"})
MAX_CODE: Final = 64
_INTENT_ID_CHARACTERS: Final = len("intent_") + 36

_FILLED_BY_NOTARY: Final = (
    "receipt_id", "receipt_hash", "grant_id", "intent_id", "runtime", "response_hash", "verification_outcome",
    "response_schema_violation",
    "kept", "caps", "summary_template", "is_repeated", "approvals", "key_purpose", "key_id", "previous_key_id", "seen",
    "lease", "standing_id", "standing_signature",
)  # fmt: skip
_of_notary, _NONE_OF_NOTARY = attrgetter(*_FILLED_BY_NOTARY), (None,) * len(_FILLED_BY_NOTARY)
_SIGNED: Final = frozenset({events.APPROVAL_GIVEN, events.APPROVAL_GRANTED, events.APPROVAL_DENIED})
"""Events that tell an operator's signature; the move that they come with holds it against the claim."""
_OF_DECISIONS: Final = ("approval_id", "approved_by", "operator_sender_binding", "operator_proof_jti")
_of_decisions, _NONE_OF_DECISIONS = attrgetter(*_OF_DECISIONS), (None,) * len(_OF_DECISIONS)


class _Attempts(msgspec.Struct, forbid_unknown_fields=True):
    """A front's count of the refusals that one event stands for."""

    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
    uid: int | None = None
    is_many_users: bool = False
    operator: str | None = None
    thumbprint: str | None = None


def check_event(event: AuditEvent, event_type: str, decisions: frozenset[str | None] | frozenset[str]) -> None:
    """Raises NotAllowed for an event of another type or decision, or with what only the notary knows."""
    if event.event_type != event_type or event.decision not in decisions:
        raise NotAllowed(f"an event {_shown(event.event_type)} with the decision {_shown(event.decision)}")
    if _of_notary(event) != _NONE_OF_NOTARY or (event.approval_signature is not None and event_type not in _SIGNED):
        raise NotAllowed("an event with fields that are the notary's to fill in")
    if event.attempts is not None:
        _check_attempts(event.attempts)


def check_call(event: AuditEvent, decisions: frozenset[str | None] | frozenset[str]) -> None:
    """Raises NotAllowed for what is not the event of a call that no operator has decided on."""
    check_event(event, events.ACTION_CALL, decisions)
    if _of_decisions(event) != _NONE_OF_DECISIONS:
        raise NotAllowed("the event of a call with an operator's decision")


def check_refusal(event: AuditEvent) -> None:
    """Raises NotAllowed for what is not the event of a refused call."""
    check_call(event, REFUSALS)
    check_code(event.error_code)


def check_noted(event: AuditEvent) -> None:
    """Raises NotAllowed for an event that WriteEvent does not write."""
    check_event(event, event.event_type, NOTED.get(event.event_type, frozenset()))


def check_code(code: str | None) -> None:
    """Raises NotAllowed for what can be no error code."""
    if not code or len(code) > MAX_CODE:
        raise NotAllowed("no error code")


def check_own(unit: Transaction, intent: OpenIntent) -> None:
    """Raises NotAllowed for an intent that another front has opened, whether or not that one still lives."""
    if intent.front_id != unit.front_id:
        raise NotAllowed(f"{intent.intent_id} was opened by {intent.front_id or 'an earlier front'}")


def check_worker(unit: Transaction, worker_id: str) -> None:
    """Raises NotAllowed for a worker of another front, and for one that has as many calls as one may have."""
    if unit.state.workers.get(worker_id, unit.front_id) != unit.front_id:
        raise NotAllowed("the worker of another front")
    if unit.calls_of(worker_id) >= MAX_AHEAD:
        raise NotAllowed("a worker that has too many calls")


def check_opening(unit: Transaction, asked: Open) -> None:
    """Raises NotAllowed for an id that can't be one, for a call without what an intent says, for a time limit that no
    manifest may set, and for a worker as check_worker does."""
    if not asked.intent_id.startswith("intent_") or len(asked.intent_id) != _INTENT_ID_CHARACTERS:
        raise NotAllowed("no id of an intent")
    if None in (asked.event.trace_id, asked.event.action_id, asked.event.principal):
        raise NotAllowed("the event of a call without trace, action or principal")
    if not 0 < asked.terms.timeout_seconds <= MAX_CALL_SECONDS:  # nor is it NaN
        raise NotAllowed("a time limit that no call may have")
    check_worker(unit, asked.worker_id)
    if asked.approver is not None and asked.standing is not None:
        raise NotAllowed("a call with an approver and a standing approval")
    if asked.approver is None:
        check_call(asked.event, frozenset({"allow", None}))
    else:
        check_event(asked.event, events.ACTION_CALL, frozenset({"allow", None}))


def check_claimed(unit: Transaction, approver: Approver, plan_hash: str) -> tuple[Approver, bool | None]:
    """The approver of a plan that this front has claimed, with the signature; and `keyed` of its body (HeldBody).
    Raises NotAllowed."""
    unit.part = "approvals"
    approval = unit.store.hold(approver.approval_id)
    if approval is None or not is_claimed_by(approval, unit.front_id):
        raise NotAllowed("an approval that this front has not claimed")
    if outcome_of(approval).claimed_by != approver.approved_by:
        raise NotAllowed("an approval that another operator has claimed")
    kept = kept_of(approval)
    if kept.plan_hash != plan_hash:
        raise NotAllowed("another plan than the one that was held")
    unit.part = "ledger"
    unit.settle()
    if has_intent_of_approval(unit.connection, approver.approval_id):
        raise NotAllowed("an approval that was executed already")
    return check_approver(unit, approval, approver), kept.keyed


def _check_attempts(attempts: dict[str, Any]) -> None:
    # SECURITY: the notary adds the counts up later. It could not go on with one that is no number, or none that fits.
    try:
        msgspec.convert(attempts, _Attempts)
    except msgspec.ValidationError:
        raise NotAllowed("attempts that no front counts") from None


def _shown(text: str | None) -> str:
    return "none" if text is None else clean_reason(text)[:MAX_CODE]
