"""Receipts as they are shown (docs/contract.md, "Receipt")."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from frontend.contract.annotations import shown_as
from frontend.contract.execution import VerificationOutcome


class NormalizedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the call, whatever its provider."""

    kind: Literal["success", "provider_failure", "timeout", "cancelled", "internal_error"]
    summary: str | UnsetType = UNSET
    """With `success`."""
    reason: str | UnsetType | None = UNSET
    """With every other kind."""


class ReceiptVerification(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier found."""

    status: VerificationOutcome
    evidence: list[Any] | UnsetType = UNSET
    """With `verified`."""
    reason: str | UnsetType | None = UNSET
    """With `verification_failed`."""


class ReceiptApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Who approved the call, and with which proof."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    """RFC 7638 thumbprint of the key that the operator's proof was signed with."""
    operator_proof_jti: str
    signature: str | UnsetType = UNSET
    """The operator's own signature of the decision, a compact JWS (docs/evidence.md); absent where none was sent."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one dispatch, signed. The signature covers the canonical form (RFC 8785) of every field but
    `result_hash`, `receipt_signature`, `signing_key_id` and `signature_status`."""

    receipt_id: str
    grant_id: str
    provider_module_digest: str
    """`sha256:<hex>` of the module that ran."""
    provider_receipt: dict[str, Any]
    """What the provider returned, or how it failed."""
    normalized_result: Annotated[dict[str, Any], shown_as(NormalizedResult)]
    verification_outcome: Annotated[dict[str, Any], shown_as(ReceiptVerification)]
    effect_evidence: list[Any]
    """What the verifier gathered; may be empty."""
    result_hash: str
    """`sha256:<hex>` of the bytes under the signature."""
    receipt_signature: str | UnsetType = UNSET
    """Ed25519, hex; absent from before signing was enabled."""
    signing_key_id: str | UnsetType = UNSET
    """`kid` of the key among the receipt keys."""
    started_at: str
    finished_at: str
    failure_class: (
        Literal["provider_error", "timeout", "policy_violation", "verification_failed", "internal_error"] | None
    )
    """Null on full success."""
    receipt_version: int | UnsetType = UNSET
    """2. Absent from receipts of before, as is everything that follows but `signature_status`."""
    principal: str | UnsetType = UNSET
    action_id: str | UnsetType = UNSET
    action_version: str | UnsetType | None = UNSET
    request_hash: str | UnsetType | None = UNSET
    plan_hash: str | UnsetType = UNSET
    trace_id: str | UnsetType = UNSET
    epoch: int | UnsetType = UNSET
    """Of the lease that the call was made with."""
    policy_rule: str | UnsetType | None = UNSET
    """Which rule allowed it."""
    policy_version: str | UnsetType | None = UNSET
    approval: ReceiptApproval | UnsetType | None = UNSET
    """Null for a call that needed none."""
    signature_status: Literal["verified", "unsigned", "unknown_kid", "signature_invalid"]
    """What the signature is worth against the current receipt keys; found out each time it is shown, not stored."""
