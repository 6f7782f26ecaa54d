"""What an approval keeps, and the three ways it is shown: to the polling agent, in the operator's list, in detail.

The body (plan and context) is written once and never changes; the outcome grows as the state moves. The request is
shown to the operator exactly as it will be executed (frontend/calls/approvals/visible.py): what a person reads is what
runs.
"""

from typing import Any

import msgspec

from frontend.calls.approvals.states import RETRY_AFTER_SECONDS, as_polled, state_at
from frontend.calls.approvals.visible import in_ascii, visible
from frontend.calls.record import CallRecord
from frontend.clock import iso
from frontend.contract.approvals import ApprovalDetail, ApprovalItem, ApprovalPoll
from frontend.errors import GateError
from frontend.telemetry.weakened import Weakened
from ipc.approvals import DENIED, FAILED, Body, Outcome, summary_of
from ipc.plan import Plan, plan_hash
from ipc.store import ApprovalRecord

_body = msgspec.json.Decoder(Body)
_outcome = msgspec.json.Decoder(Outcome)


def encode(value: Body | Outcome) -> str:
    """JSON text for the store."""
    return msgspec.json.encode(value).decode()


def body_of(approval: ApprovalRecord) -> Body:
    """Decode the immutable part. Raises GateError plan_integrity when the store holds something else."""
    body = readable_body(approval)
    if body is None:
        raise GateError("plan_integrity", cause="the stored plan can't be read")
    return body


def readable_body(approval: ApprovalRecord) -> Body | None:
    """The immutable part, or None when the store holds something else."""
    try:
        return _body.decode(approval.body)
    except (ValueError, RecursionError):
        return None


def outcome_of(approval: ApprovalRecord) -> Outcome:
    """Decode the growing part; empty when the store holds something else: states rule, this only tells of them."""
    try:
        return _outcome.decode(approval.outcome)
    except (ValueError, RecursionError):
        return Outcome()


def call_record_of(approval: ApprovalRecord, weakened: Weakened) -> CallRecord:
    """The file of the held call, opened again; without a readable plan, with what the record itself says."""
    body = readable_body(approval)
    if body is not None:
        return CallRecord.of_plan(body.plan, body.identity_method, weakened)
    return CallRecord(approval.action_id, weakened)


def is_intact(body: Body) -> bool:
    """True when the stored plan still hashes to what was stored beside it."""
    return plan_hash(body.plan) == body.plan_hash


def polled(approval: ApprovalRecord, now: float) -> ApprovalPoll:
    """The agent's view (docs/contract.md, "Approval"; docs/decisions.md, "Approvals")."""
    state, outcome = state_at(approval.state, approval.expires_at, now), outcome_of(approval)
    view: dict[str, Any] = {
        "approval_id": approval.approval_id,
        "action_id": approval.action_id,
        "state": state,
        "status": as_polled(state),
    }
    if outcome.receipt_id is not None:
        view["receipt_id"] = outcome.receipt_id
    if state == DENIED:
        view["deny_reason"] = view["reason"] = outcome.deny_reason
    if state == FAILED:
        view["reason"] = outcome.error_code
    if state in RETRY_AFTER_SECONDS:
        view["retry_after_seconds"] = RETRY_AFTER_SECONDS[state]
    return ApprovalPoll(**view)


def listed(approval: ApprovalRecord, now: float) -> ApprovalItem:
    """One item of the operator's list. What only the plan tells is null when it can't be read: the rest still shows."""
    return ApprovalItem(**_item(approval, now))


def _item(approval: ApprovalRecord, now: float) -> dict[str, Any]:
    plan = summary_of(approval.body).plan
    state = state_at(approval.state, approval.expires_at, now)
    return {
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


def detailed(approval: ApprovalRecord, now: float) -> ApprovalDetail:
    """What an operator reads before deciding: everything that will happen, nothing that will not.

    Raises GateError plan_integrity when there is no whole plan to show.
    """
    body, outcome = body_of(approval), outcome_of(approval)
    if not is_intact(body):
        raise GateError("plan_integrity", cause="the stored plan does not hash to its stored hash")
    plan = body.plan
    shown = _item(approval, now) | {
        "trace_id": plan.trace_id,
        "request": visible(msgspec.json.decode(plan.request)),
        "request_json": in_ascii(plan.request),
        "approved_targets": [visible(target) for target in plan.targets],
        "approved_request": visible(msgspec.to_builtins(plan.http_request)),
        "approved_secrets": [secret.name for secret in plan.secrets],
        "approved_egress": {
            "profile": plan.egress.profile,
            "allowed_domains": list(plan.egress.allowed_domains),
            "allowed_methods": list(plan.egress.allowed_methods),
        },
        "approved_files": _files(plan),
        "unresolved_domains": list(plan.unresolved_domains),
        "unresolved_paths": [visible(path) for path in plan.unresolved_paths],
        "sinks": list(plan.sinks),
        "verifier_kind": plan.verifier_kind,
        "provider_module_digest": plan.provider_module_digest,
        "resource_limits": msgspec.to_builtins(plan.limits),
        "policy_version": plan.policy_version,
        "policy_rule": plan.policy_rule,
        "budget_snapshot": {"calls_remaining": plan.calls_remaining},
        "revocation_epoch": plan.epoch,
        "plan_hash": body.plan_hash,
        **msgspec.to_builtins(outcome),
    }
    return msgspec.convert(shown, ApprovalDetail)


def _files(plan: Plan) -> dict[str, Any] | None:
    if plan.files is None:
        return None
    shown: dict[str, Any] = visible(msgspec.to_builtins(plan.files))
    del shown["root"]  # a path of this host
    return shown
