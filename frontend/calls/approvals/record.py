"""The stored record of an approval, and its three views: for the polling agent, in the operator's list, in detail.

The body (plan and context) is written once, and kept for `approvals.keep_days` after the end; the outcome grows as the
state moves. Front and notary make the detail with ipc/keys/shown.py.
"""

from typing import Any, NamedTuple

import msgspec

from contract.approvals import ApprovalDetail, ApprovalPoll, ListedApproval
from frontend.calls.approvals.states import RETRY_AFTER_SECONDS, as_polled, state_at
from frontend.calls.caps import shown_caps
from frontend.calls.record import CallRecord
from frontend.clock import iso
from frontend.contract.answers import answer_of
from frontend.errors import GateError
from frontend.telemetry.weakened import Weakened
from ipc.approvals import (
    APPROVED,
    DENIED,
    ENDED,
    FAILED,
    DecisionOutcome,
    HeldBody,
    read_body,
    read_remains,
    remains_of,
    summary_of,
)
from ipc.backends.store import ApprovalRecord
from ipc.caps import CapReading
from ipc.configuration.quorum import GivenApproval, Quorum
from ipc.keys.shown import hash_of, shown, without_request

_outcome = msgspec.json.Decoder(DecisionOutcome)


def encode(value: HeldBody | DecisionOutcome) -> str:
    """JSON text for the store."""
    return msgspec.json.encode(value).decode()


def body_of(approval: ApprovalRecord) -> HeldBody:
    """Decode the immutable part. Raises GateError plan_integrity when the store holds something else."""
    body = readable_body(approval)
    if body is None:
        raise GateError("plan_integrity", cause="the stored plan can't be read")
    return body


def readable_body(approval: ApprovalRecord) -> HeldBody | None:
    """The immutable part, or None when the store holds something else."""
    try:
        return read_body(approval.body)
    except ValueError:
        return None


def outcome_of(approval: ApprovalRecord) -> DecisionOutcome:
    """Decode the growing part; empty when the store holds something else: states rule, this only tells of them."""
    try:
        return _outcome.decode(approval.outcome)
    except (ValueError, RecursionError):
        return DecisionOutcome()


def call_record_of(approval: ApprovalRecord, weakened: Weakened) -> CallRecord:
    """The file of the held call, opened again; without a readable plan, with what the record itself says."""
    body = readable_body(approval)
    if body is not None:
        record = CallRecord.of_plan(body.plan, body.origin, weakened)
        record.caps = body.caps
        return record
    return CallRecord(approval.action_id, weakened)


def polled(approval: ApprovalRecord, now: float) -> ApprovalPoll:
    """The agent's view (docs/contract.md, "Approval"; docs/decisions/approvals.md, "Approvals")."""
    state, outcome = state_at(approval.state, approval.expires_at, now), outcome_of(approval)
    view: dict[str, Any] = {
        "approval_id": approval.approval_id,
        "action_id": approval.action_id,
        "state": APPROVED if state == FAILED else state,
        "status": as_polled(state),
    }
    if outcome.receipt_id is not None:
        view["receipt_id"] = outcome.receipt_id
    if state == DENIED:
        view["deny_reason"] = view["reason"] = outcome.deny_reason
    if state == FAILED:
        view["outcome"], view["reason"] = FAILED, outcome.error_code
    if state in RETRY_AFTER_SECONDS:
        view["retry_after_seconds"] = RETRY_AFTER_SECONDS[state]
    return ApprovalPoll(**view)


_TOLD = ("claimed_by", "receipt_id", "deny_reason", "error_code")
"""Fields of an outcome that a list shows."""


def listed(approval: ApprovalRecord, now: float) -> ListedApproval:
    """One item of the operator's list. Fields of the plan are null if it can't be read."""
    summary = summary_of(approval.body)
    plan = summary.plan
    state = state_at(approval.state, approval.expires_at, now)
    members: dict[str, Any] = {
        "approval_id": approval.approval_id,
        "action_id": approval.action_id,
        "action_version": plan.action_version,
        "state": state,
        "status": as_polled(state),
        "principal": plan.principal,
        "session_id": approval.session_id,
        "owner": plan.owner,
        "risk_level": plan.risk_level,
        "request_hash": approval.request_hash,
        "created_at": iso(approval.created_at),
        "expires_at": iso(approval.expires_at),
    }
    grown = outcome_of(approval)
    outcome = msgspec.to_builtins(grown)
    members |= {name: outcome.get(name) for name in _TOLD}
    if summary.summary is not None:
        members["summary"] = summary.summary
    members |= _approvals(summary.quorum, grown)
    return ListedApproval(**members)


class ShownHold(NamedTuple):
    """The view of a stored call for operators: the fields that never change while it is decided, and their hash."""

    plan_hash: str
    members: dict[str, Any]
    shown_hash: str | None
    has_caps: bool = False
    """The call counts for caps."""


def whole_of(approval: ApprovalRecord) -> ShownHold:
    """Takes long for a large call (frontend/calls/approvals/looks.py). Once it has ended and the
    request is not kept, or not as it was stored, it is the rest of the plan. Raises GateError plan_integrity."""
    body = readable_body(approval)
    if body is None or not body.is_intact:
        if approval.state in ENDED:
            return _rest_of(approval)
        raise GateError("plan_integrity", cause="the stored plan can't be read, or does not hash to its stored hash")
    members = shown(approval, body)
    return ShownHold(body.plan_hash, members, hash_of(members), bool(body.caps))


def detailed(
    approval: ApprovalRecord, now: float, whole: ShownHold | None = None, caps: tuple[CapReading, ...] = ()
) -> ApprovalDetail:
    """The plan that an operator decides about, and how far the approval has come.

    `whole` is that of this approval, where it is known; `caps` how its caps stand.
    Raises GateError plan_integrity when there is no plan to show.
    """
    state = state_at(approval.state, approval.expires_at, now)
    whole, grown = whole or whole_of(approval), outcome_of(approval)
    members = {
        **whole.members, "shown_hash": whole.shown_hash, "state": state, "status": as_polled(state),
        **msgspec.to_builtins(grown), **_approvals(summary_of(approval.body).quorum, grown),
    }  # fmt: skip
    if caps:
        members["caps"] = shown_caps(caps)
    return answer_of(ApprovalDetail, members)


def count_of(quorum: Quorum, given: tuple[GivenApproval, ...]) -> dict[str, Any]:
    """How many of the needed approvals are given, and by whom."""
    return {
        "given": len(given), "needed": quorum.count, "groups": dict(quorum.groups), "by": msgspec.to_builtins(given)
    }  # fmt: skip


def _approvals(quorum: Quorum | None, outcome: DecisionOutcome) -> dict[str, Any]:
    return {} if quorum is None else {"approvals": count_of(quorum, outcome.approvals)}


def _rest_of(approval: ApprovalRecord) -> ShownHold:
    kept = read_remains(remains_of(approval.body))
    if kept.plan_hash is None:
        raise GateError("plan_integrity", cause="what is kept of the plan can't be read")
    gone = dict.fromkeys(("request", "request_json", "approved_request"))
    members = {**without_request(approval, kept), **gone, "unresolved_paths": []}
    return ShownHold(kept.plan_hash, members, None)
