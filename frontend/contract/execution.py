"""What execute and approve answer (docs/contract.md, "Execution result" and "Pending approval response")."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

VerificationOutcome = Literal[
    "verified", "verification_failed", "unverifiable_declared", "provider_failed_before_verification", "skipped"
]


class VerificationSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier found."""

    outcome: VerificationOutcome
    is_fully_successful: bool
    """The provider succeeded, and the effect is confirmed or declared unverifiable."""


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """What the call used up."""

    duration_ms: int
    exit_code: int
    fuel_consumed: int


class ApprovalNote(msgspec.Struct, frozen=True, kw_only=True):
    """Who let a held call run, and what binds that person to this plan."""

    approval_id: str
    decision: Literal["approved"] = "approved"
    approved_by: str
    """The operator."""
    approval_hash: str
    """Hash of the plan that was approved and run."""
    operator_authn_method: Literal["dpop"] = "dpop"
    operator_sender_binding: str
    """Thumbprint of the operator's key."""
    operator_proof_jti: str


class ExecutionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ran, whose evidence is durable."""

    decision: Literal["executed"] = "executed"
    trace_id: str
    action_id: str
    grant_id: str
    receipt_id: str
    output: dict[str, Any]
    """The action's own; its shape follows the action."""
    verification_outcome: VerificationOutcome
    verification: VerificationSummary
    runtime: Runtime
    approval: ApprovalNote | UnsetType = UNSET
    """Only where a person approved the call."""
    learned_domain: str | UnsetType = UNSET
    """Only where it was approved with `learn_domain`: the domain that the action may reach from now on."""
    learned_path: str | UnsetType = UNSET
    """Only where it was approved with `learn_path`: the pattern that the action may touch from now on."""
    learn_error: str | UnsetType = UNSET
    """Only where the call ran and something could not be learned with it: an error code, or `verification_failed`."""


class PendingApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person; poll it by its approval id."""

    decision: Literal["pending_approval"] = "pending_approval"
    approval_id: str
    request_hash: str
    """`sha256:<hex>` of the canonical request."""
    trace_id: str
