"""The text of a held call that an operator sees before deciding, and its hash.

Guarantees that front and notary make the same text of a stored approval, so that the hash which the operator signs
reveals a front that shows something else. The request is shown as it will be executed (ipc/texts/visible.py): what a
person reads is what runs.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET

from ipc.approvals import HeldBody, RemainingPlan, Remains
from ipc.backends.store import ApprovalRecord
from ipc.configuration.quorum import Quorum
from ipc.evidence.kept_values import summary_of, values_of
from ipc.plan import FileAccess, Plan
from ipc.process.clock import iso
from ipc.texts.canonical import NotCanonical, canonical_bytes, sha256_hex
from ipc.texts.visible import in_ascii, visible

NOT_HASHED: Final = frozenset(
    {
        "state", "status", "claimed_by", "claimed_at", "completed_at", "receipt_id", "deny_reason", "error_code",
        "approval_signature", "approvals", "caps", "shown_hash",
    }
)  # fmt: skip
"""Members of an approval's detail that change while it is decided, and the hash itself. Every other one is hashed."""


def shown(approval: ApprovalRecord, body: HeldBody) -> dict[str, Any]:
    """The members of the detail that never change: everything that will happen, nothing that will not."""
    return {**without_request(approval, body), **_of_request(body.plan)}


def shown_plan(plan: Plan, description: str | None, quorum: Quorum | None) -> dict[str, Any]:
    """Those of them that need no hold: what an operator would be shown if the call was held."""
    call = {"action_id": plan.action_id, "request_hash": plan.request_hash, **_quorum_member(quorum)}
    return {**call, **_of_plan(plan, description), **_of_request(plan)}


def without_request(approval: ApprovalRecord, body: HeldBody | Remains) -> dict[str, Any]:
    """Those of them that are kept when the approval has ended."""
    return {
        "approval_id": approval.approval_id,
        "action_id": approval.action_id,
        "session_id": approval.session_id,
        "request_hash": approval.request_hash,
        "created_at": iso(approval.created_at),
        "expires_at": iso(approval.expires_at),
        "plan_hash": body.plan_hash,
        **_quorum_member(body.quorum),
        **_of_plan(body.plan, body.description),
    }


def shown_quorum(quorum: Quorum) -> dict[str, Any]:
    """The approvals that a call needs."""
    return {"count": quorum.count, "groups": dict(quorum.groups)}


def _quorum_member(quorum: Quorum | None) -> dict[str, Any]:
    # A hold that needs one approval has the same hash as one of an earlier version.
    return {} if quorum is None else {"quorum": shown_quorum(quorum)}


def _of_plan(plan: Plan | RemainingPlan, description: str | None) -> dict[str, Any]:
    return {
        # A hold of an earlier version has no description, and keeps its hash without this member.
        **({} if description is None else {"description": description}),
        "action_version": plan.action_version,
        "principal": plan.principal,
        "owner": plan.owner,
        "risk_level": plan.risk_level,
        "trace_id": plan.trace_id,
        "approved_targets": [visible(target) for target in plan.targets],
        "approved_secrets": [secret.name for secret in plan.secrets],
        "secret_domains": {one.name: list(one.domains) for one in plan.secrets if one.way is not None},
        "secret_ways": {one.name: one.way.shown for one in plan.secrets if one.way is not None},
        "approved_egress": {
            "profile": plan.egress.profile,
            "allowed_domains": list(plan.egress.allowed_domains),
            "allowed_methods": list(plan.egress.allowed_methods),
            # A hold without them has the same hash as one of an earlier version.
            **({"private_networks": [one.name for one in plan.egress.networks]} if plan.egress.networks else {}),
        },
        "approved_files": None if plan.files is None else _files(plan.files),
        "unresolved_domains": list(plan.unresolved_domains),
        "sinks": list(plan.sinks),
        "verifier_kind": plan.verifier_kind,
        "provider_module_digest": plan.provider_module_digest,
        "resource_limits": msgspec.to_builtins(plan.limits),
        "policy_version": plan.policy_version,
        "policy_rule": plan.policy_rule,
        "budget_snapshot": {"calls_remaining": plan.calls_remaining},
        "revocation_epoch": plan.epoch,
    }


def _of_request(plan: Plan) -> dict[str, Any]:
    request = msgspec.json.decode(plan.request)
    summary = None if plan.kept is UNSET else summary_of(values_of(plan.kept, request))
    return {
        **({} if summary is None else {"summary": summary}),
        "request": visible(request),
        "request_json": in_ascii(plan.request),
        "approved_request": visible(msgspec.to_builtins(plan.http_request)),
        "unresolved_paths": [visible(path) for path in plan.unresolved_paths],
    }


def hash_of(members: dict[str, Any]) -> str | None:
    """`sha256:<hex>` over the canonical form (RFC 8785) of what is hashed; None where a number has no such form."""
    try:
        return sha256_hex(canonical_bytes({name: value for name, value in members.items() if name not in NOT_HASHED}))
    except NotCanonical:
        return None


def _files(files: FileAccess) -> dict[str, Any]:
    members: dict[str, Any] = visible(msgspec.to_builtins(files))
    del members["root"]  # a path of this host
    return members
