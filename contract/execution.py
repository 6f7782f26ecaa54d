"""Answers of execute and approve (docs/contract.md, "Execution result" and "Pending approval response")."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from .noun import LEFT_OUT, NEVER_NULL, NeverNull, Noun, shown_as

VerificationOutcome = Literal[
    "verified", "verification_failed", "unverifiable_declared", "provider_failed_before_verification", "skipped"
]
FULLY_SUCCESSFUL = frozenset({"verified", "unverifiable_declared"})


class VerificationSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The verifier's finding."""

    outcome: VerificationOutcome
    is_fully_successful: bool
    """The provider succeeded, and the effect is confirmed or declared unverifiable."""


class Runtime(Noun, frozen=True, kw_only=True):
    """The resources that the call used."""

    duration_ms: NeverNull[int]
    exit_code: NeverNull[int]
    fuel_consumed: NeverNull[int]


class ApprovalNote(Noun, frozen=True, kw_only=True):
    """The operator who approved a held call, and the proof that binds them to this plan."""

    approval_id: str
    decision: Literal["approved"] = "approved"
    approved_by: NeverNull[str]
    """The operator."""
    approval_hash: NeverNull[str]
    """Hash of the plan that was approved and run."""
    operator_authn_method: Literal["dpop"] = "dpop"
    operator_sender_binding: NeverNull[str]
    """Thumbprint of the operator's key."""
    operator_proof_jti: NeverNull[str]


class ExecutionResult(Noun, frozen=True, kw_only=True):
    """A call that ran, whose evidence is durable."""

    decision: Literal["executed"] = "executed"
    trace_id: str
    action_id: str
    grant_id: str
    receipt_id: str
    output: Mapping[str, Any]
    """The action's own; its shape follows the action."""
    verification_outcome: VerificationOutcome
    verification: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(VerificationSummary)]
    runtime: NeverNull[Runtime]
    approval: NeverNull[ApprovalNote] = LEFT_OUT
    """Only where a person approved the call."""
    learned_domain: NeverNull[str] = LEFT_OUT
    """Only where it was approved with `learn_domain`: the domain that the action may reach from now on."""
    learned_path: NeverNull[str] = LEFT_OUT
    """Only where it was approved with `learn_path`: the pattern that the action may touch from now on."""
    learn_error: NeverNull[str] = LEFT_OUT
    """Only where the call ran and something could not be learned with it: an error code, or `verification_failed`."""

    @property
    def is_fully_successful(self) -> bool:
        """The effect was verified, or the action declares that it can't be."""
        return self.verification_outcome in FULLY_SUCCESSFUL


class PendingApproval(Noun, frozen=True, kw_only=True):
    """A call that waits for a person; poll it by its approval id."""

    decision: Literal["pending_approval"] = "pending_approval"
    approval_id: str
    request_hash: str
    """`sha256:<hex>` of the canonical request."""
    trace_id: str
    summary: NeverNull[str] = LEFT_OUT
    """The line of kept values by which people know the call; absent without one."""
