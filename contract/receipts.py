"""Receipts as they are shown (docs/contract.md, "Receipt")."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .approvals import ApprovalQuorum
from .execution import FULLY_SUCCESSFUL, VerificationOutcome
from .noun import LEFT_OUT, NEVER_NULL, Listed, NeverNull, Noun, shown_as


class NormalizedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the call in a form that all providers share."""

    kind: Literal["success", "provider_failure", "timeout", "cancelled", "internal_error"]
    summary: str | UnsetType = UNSET
    """With `success`."""
    reason: str | UnsetType | None = UNSET
    """With every other kind."""


class ReceiptVerification(msgspec.Struct, frozen=True, kw_only=True):
    """The verifier's finding."""

    status: VerificationOutcome
    evidence: tuple[Any, ...] | UnsetType = UNSET
    """With `verified`."""
    reason: str | UnsetType | None = UNSET
    """With `verification_failed`."""


class ReceiptApproval(Noun, frozen=True, kw_only=True):
    """The operator who approved the call, and the proof."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    """RFC 7638 thumbprint of the key that the operator's proof was signed with."""
    operator_proof_jti: str
    signature: NeverNull[str] = LEFT_OUT
    """The operator's own signature of the decision, a compact JWS (docs/evidence.md); absent where none was sent."""
    quorum: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ApprovalQuorum)] = LEFT_OUT
    """The approvals that the call needed; absent where one was enough."""
    approvals: Listed[Any] = LEFT_OUT
    """All of them where it needed several; the operator's above is the last one."""


class Receipt(Noun, frozen=True, kw_only=True):
    """The result of one dispatch, signed. The signature covers the canonical form (RFC 8785) of every field but
    `result_hash`, `receipt_signature`, `signing_key_id` and `signature_status`."""

    receipt_id: str
    grant_id: str
    provider_module_digest: str
    """`sha256:<hex>` of the module that ran."""
    provider_receipt: Mapping[str, Any]
    """The provider's answer, or its failure."""
    normalized_result: Annotated[Mapping[str, Any], shown_as(NormalizedResult)]
    verification_outcome: Annotated[Mapping[str, Any], shown_as(ReceiptVerification)]
    effect_evidence: Listed[Any]
    """The verifier's evidence; may be empty."""
    result_hash: str
    """`sha256:<hex>` of the bytes under the signature."""
    receipt_signature: NeverNull[str] = LEFT_OUT
    """Ed25519, hex; absent from before signing was enabled."""
    signing_key_id: NeverNull[str] = LEFT_OUT
    """`kid` of the key among the receipt keys."""
    started_at: str
    finished_at: str
    failure_class: (
        Literal["provider_error", "timeout", "policy_violation", "verification_failed", "internal_error"] | None
    )
    """Null on full success."""
    receipt_version: NeverNull[int] = LEFT_OUT
    """2. Absent from receipts of version 1, like all that follows but `signature_status`."""
    principal: NeverNull[str] = LEFT_OUT
    action_id: NeverNull[str] = LEFT_OUT
    action_version: str | None = LEFT_OUT
    request_hash: str | None = LEFT_OUT
    plan_hash: NeverNull[str] = LEFT_OUT
    trace_id: NeverNull[str] = LEFT_OUT
    epoch: NeverNull[int] = LEFT_OUT
    """The epoch of the call's lease."""
    policy_rule: str | None = LEFT_OUT
    """Which rule allowed it."""
    policy_version: str | None = LEFT_OUT
    approval: ReceiptApproval | None = LEFT_OUT
    """Null for a call that needed none."""
    egress_networks: NeverNull[tuple[str, ...]] = LEFT_OUT
    """Names of the private networks that the call's target may lead into; absent without such networks."""
    standing_id: NeverNull[str] = LEFT_OUT
    """The standing approval by which a call ran that would have been held; absent for any other call."""
    standing_signature: NeverNull[str] = LEFT_OUT
    """The text of that standing approval as its operator signed it, a compact JWS (docs/evidence.md)."""
    signature_status: NeverNull[Literal["verified", "unsigned", "unknown_kid", "signature_invalid"]]
    """The verdict on the signature by the current receipt keys; found each time the receipt is shown, not stored."""

    @property
    def is_fully_successful(self) -> bool:
        """The provider succeeded, and the effect was verified or declared unverifiable."""
        kind, status = self.normalized_result.get("kind"), self.verification_outcome.get("status")
        return kind == "success" and status in FULLY_SUCCESSFUL
