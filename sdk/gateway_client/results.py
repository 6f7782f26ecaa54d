"""What agents get back: frozen dataclasses with the interface's own names. `raw` is the JSON as the gateway sent it.

Fields that the interface promises are always there; those with a default may be missing. Values that may grow in later
versions (states, risk levels, outcomes) are plain strings. Never holds a token: a lease's is kept elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FULLY_SUCCESSFUL = frozenset({"verified", "unverifiable_declared"})
Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """docs/contract.md, "Readiness values". `status`: ready, degraded or not_ready."""

    status: str
    redis: bool | None = None
    opa: bool | None = None
    ledger: bool | None = None
    approval_store: bool | None = None
    egress_proxy: bool | None = None
    actions_registered: int | None = None
    raw: Raw = field(repr=False)

    @property
    def is_ready(self) -> bool:
        """True while calls are served, degraded included."""
        return self.status in {"ready", "degraded"}


@dataclass(frozen=True, kw_only=True)
class ActionSummary:
    """One item of `GET /v1/actions`."""

    action_id: str
    version: str
    risk_level: str
    description: str = ""
    database_mode: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """`GET /v1/actions/{action_id}`; what is not a field here stands in `raw`."""

    action_id: str
    version: str
    risk_level: str
    description: str = ""
    provider_module_digest: str | None = None
    required_imports: tuple[str, ...] = ()
    required_scopes: tuple[str, ...] = ()
    resource_limits: Mapping[str, Any] | None = None
    declared_side_effects: tuple[str, ...] = ()
    verifier_kind: str | None = None
    egress: Mapping[str, Any] | None = None
    io: Mapping[str, Any] | None = None
    request_schema: Any = None
    """JSON Schema; None where the action declares none."""
    response_schema: Any = None
    """JSON Schema of the output; None where the action declares none."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Session:
    """The lease in use, without its token. `expires_at` as the gateway sent it (ISO 8601, UTC)."""

    session_id: str
    lease_jti: str
    expires_at: str


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """What a call used."""

    duration_ms: int | None = None
    exit_code: int | None = None
    fuel_consumed: int | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ApprovalBinding:
    """Which operator approved a call, as it is bound into the grant's signature."""

    approval_id: str
    approved_by: str | None = None
    approval_hash: str | None = None
    operator_authn_method: str | None = None
    operator_sender_binding: str | None = None
    operator_proof_jti: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ReceiptApproval:
    """Who approved a call, and with which proof, as its receipt says it."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    """RFC 7638 thumbprint of the key that the operator's proof was signed with."""
    operator_proof_jti: str
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """A signed receipt. Check its signature with gateway_client.receipts.verify_receipt.

    `receipt_version` is None for version 1, whose receipts lack all that follows it but `signature_status`.
    """

    receipt_id: str
    grant_id: str
    provider_module_digest: str
    provider_receipt: Any
    normalized_result: Mapping[str, Any]
    verification_outcome: Mapping[str, Any]
    result_hash: str
    started_at: str
    finished_at: str
    effect_evidence: tuple[Any, ...] = ()
    receipt_signature: str | None = None
    signing_key_id: str | None = None
    failure_class: str | None = None
    receipt_version: int | None = None
    principal: str | None = None
    action_id: str | None = None
    action_version: str | None = None
    request_hash: str | None = None
    plan_hash: str | None = None
    trace_id: str | None = None
    epoch: int | None = None
    """Of the lease that the call was made with."""
    policy_rule: str | None = None
    policy_version: str | None = None
    approval: ReceiptApproval | None = None
    """None for a call that needed none."""
    signature_status: str | None = None
    """The gateway's own word; an auditor verifies instead."""
    raw: Raw = field(repr=False)

    @property
    def is_fully_successful(self) -> bool:
        """The provider succeeded, and the effect was verified or declared unverifiable."""
        kind, status = self.normalized_result.get("kind"), self.verification_outcome.get("status")
        return kind == "success" and status in FULLY_SUCCESSFUL


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A call that ran. `output` is the action's own.

    After a wait for approval it is told from the receipt, which then stands in `receipt`; `runtime` is None and `raw`
    is the receipt's JSON. `approval` is for the operator who approved: the agent gets `approval_id` alone.
    """

    trace_id: str
    action_id: str
    grant_id: str
    receipt_id: str
    output: Any
    verification_outcome: str
    verification: Mapping[str, Any] | None = None
    runtime: Runtime | None = None
    approval: ApprovalBinding | None = None
    learned_domain: str | None = None
    learned_path: str | None = None
    learn_error: str | None = None
    """Why nothing was learned although it was asked for; the call itself ran."""
    approval_id: str | None = None
    receipt: Receipt | None = None
    raw: Raw = field(repr=False)

    @property
    def is_fully_successful(self) -> bool:
        """The effect was verified, or the action declares that it can't be."""
        return self.verification_outcome in FULLY_SUCCESSFUL


@dataclass(frozen=True, kw_only=True)
class Held:
    """A call that waits for an operator. Poll `approval_id` with the client that made the call."""

    approval_id: str
    request_hash: str
    trace_id: str
    decision: str = "pending_approval"
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Poll:
    """Where a held call stands. `state`: pending, claimed, approved, denied or expired. `outcome` is `failed` for an
    approved call that could not be carried out; earlier gateways had that as a `state`."""

    approval_id: str
    state: str
    action_id: str | None = None
    receipt_id: str | None = None
    deny_reason: str | None = None
    reason: str | None = None
    outcome: str | None = None
    retry_after_seconds: float | None = None
    raw: Raw = field(repr=False)

    @property
    def is_decided(self) -> bool:
        """True when the state will not change any more."""
        return self.state not in {"pending", "claimed"}


@dataclass(frozen=True, kw_only=True)
class Jwks:
    """Public keys, current and historical."""

    keys: tuple[Mapping[str, Any], ...]
    raw: Raw = field(repr=False)
