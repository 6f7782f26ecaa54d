"""Audit events: the struct and the names of their types.

Front and notary both name events; the notary alone links, stores and hashes them (notary/ledger/chain.py). Never
decides what is evidence.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from contract.failures import FailureName, MayHaveRun

ACTION_CALL: Final = "ActionCall"
ACTION_PREVIEWED: Final = "ActionPreviewed"
LEASE_ISSUED: Final = "LeaseIssued"
APPROVAL_GIVEN: Final = "ApprovalGiven"
APPROVAL_GRANTED: Final = "ApprovalGranted"
APPROVAL_DENIED: Final = "ApprovalDenied"
APPROVAL_EXPIRED: Final = "ApprovalExpired"
ADMIN_DRAIN: Final = "AdminDrain"
ADMIN_RELOAD: Final = "AdminReload"
ADMIN_REVOKE_ALL: Final = "AdminRevokeAll"
SESSION_REVOKED: Final = "SessionRevoked"
RECEIPT_KEYS_READ: Final = "ReceiptKeysRead"
DOMAIN_ADDED: Final = "DomainAdded"
DOMAIN_REMOVED: Final = "DomainRemoved"
DOMAIN_CLEARED: Final = "DomainCleared"
PATH_ADDED: Final = "PathAdded"
PATH_REMOVED: Final = "PathRemoved"
PATH_CLEARED: Final = "PathCleared"
POLICY_GRANTED: Final = "PolicyGranted"
POLICY_REVOKED: Final = "PolicyRevoked"
POLICY_ALLOWLIST_ADDED: Final = "PolicyAllowlistAdded"
POLICY_ALLOWLIST_REMOVED: Final = "PolicyAllowlistRemoved"
POLICY_THRESHOLD_SET: Final = "PolicyThresholdSet"
POLICY_THRESHOLD_CLEARED: Final = "PolicyThresholdCleared"
POLICY_CAP_SET: Final = "PolicyCapSet"
POLICY_CAP_CLEARED: Final = "PolicyCapCleared"
STANDING_ADDED: Final = "StandingApprovalAdded"
STANDING_REVOKED: Final = "StandingApprovalRevoked"
STANDING_ENDED: Final = "StandingApprovalEnded"
BUDGET_ROLLBACK_FAILED: Final = "BudgetRollbackFailed"
KEYS_ROTATED: Final = "KeysRotated"
INTENT_RESOLVED: Final = "IntentResolved"
INTENT_VERIFICATION: Final = "IntentVerification"
OPERATOR_AUTH_FAILED: Final = "OperatorAuthFailed"
ROLLBACK_ACCEPTED: Final = "RollbackAccepted"
CLOCK_ACCEPTED: Final = "ClockAccepted"
LEDGER_SEALED: Final = "LedgerSealed"
WEBHOOK_TESTED: Final = "WebhookTested"
WEBHOOKS_REDELIVERED: Final = "WebhooksRedelivered"
ACTION_ROLLED_BACK: Final = "ActionRolledBack"
EVIDENCE_ERASED: Final = "EvidenceErased"
GATEWAY_STARTED: Final = "GatewayStarted"
GATEWAY_STOPPED: Final = "GatewayStopped"


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of evidence; a field that does not apply is absent.

    docs/decisions/evidence.md, "Audit, receipts, intents".
    """

    event_type: str
    event_id: str = ""
    """Set by the notary, as `timestamp` is."""
    timestamp: str = ""
    """UTC, milliseconds, `Z`."""
    trace_id: str | None = None
    principal: str | None = None
    owner: str | None = None
    session_id: str | None = None
    lease_jti: str | None = None
    identity_method: str | None = None
    identity_issuer: str | None = None
    """The issuer of the token by which the caller is known."""
    identity_subject: str | None = None
    """The subject of that token, or the name of the caller's certificate."""
    token_binding: str | None = None
    """`dpop` if that token is bound to the key of the lease, else `bearer`."""
    key_thumbprint: str | None = None
    """RFC 7638 thumbprint of the key that proved a call; in the IntentResolved of a call, too."""
    lease: dict[str, Any] | None = None
    """For an issued lease: `expires_at`, `epoch`, and if set `max_calls` and `uid`, the user of this host that asked
    for it."""
    action_id: str | None = None
    action_version: str | None = None
    provider_module_digest: str | None = None
    trust_verdict: str | None = None
    risk_level: str | None = None
    request_hash: str | None = None
    kept: dict[str, str] | None = None
    """JSON pointer -> commitment to the value of the request there: `sha256:<hex>` over 16 bytes of salt and the
    value's canonical form. Value and salt stand beside the ledger, and may be erased there."""
    summary_template: str | None = None
    """The line that tells people of the call, with pointers of `kept` in braces."""
    policy_version: str | None = None
    policy_rule: str | None = None
    decision: str | None = None
    """allow, deny, error or pending_approval."""
    deny_reason: str | None = None
    reason: str | None = None
    error_code: str | None = None
    failure: FailureName | None = None
    """The failure of the call, the same as in the header `X-Failure`."""
    may_have_run: MayHaveRun | None = None
    """`no`, `yes` or `unknown`, the same as in the header `X-May-Have-Run`."""
    allowed_sinks: tuple[str, ...] | None = None
    egress_networks: tuple[str, ...] | None = None
    """Names of the private networks that the call's target may lead into."""
    budgets_before: dict[str, Any] | None = None
    budgets_after: dict[str, Any] | None = None
    caps: tuple[dict[str, str], ...] | None = None
    """The caps that the call counts for, or that hold or deny it: `pointer`, `per`, the `total` of the window without
    it, and `with_this`, decimals as texts. For calls of actions with caps."""
    runtime: dict[str, Any] | None = None
    response_hash: str | None = None
    response_schema_violation: str | None = None
    """For a call whose answer was sent although it breaks the action's response schema, with
    `response_schema_enforcement = "warn"`: "<JSON pointer>: <keyword>"."""
    grant_id: str | None = None
    receipt_id: str | None = None
    receipt_hash: str | None = None
    """`sha256:<hex>` of the receipt's stored bytes: so the tree covers receipts, too."""
    intent_id: str | None = None
    verification_outcome: str | None = None
    approval_id: str | None = None
    is_repeated: bool | None = None
    """True where a call was answered with the hold of the same call, which waits already: no new hold."""
    approved_by: str | None = None
    operator_sender_binding: str | None = None
    operator_proof_jti: str | None = None
    approval_signature: str | None = None
    """With ApprovalGranted and ApprovalDenied: the operator's own signature of that decision (docs/evidence.md)."""
    quorum: dict[str, Any] | None = None
    """The approvals that a hold needs: `count`, and `groups` with the number of members of each."""
    approvals: list[dict[str, Any]] | None = None
    """With ApprovalGranted of such a hold: every approval, with its operator, key, proof, groups and signature."""
    standing_id: str | None = None
    """The standing approval that let the call run; in the events of a standing approval its own id."""
    standing_signature: str | None = None
    """With StandingApprovalAdded: the text that its operator signed (docs/evidence.md)."""
    change: dict[str, Any] | None = None
    """The change that an operator made: of policy `principal` and `actions`, or `agent_id` beside `action_id`; of the
    epoch `previous_epoch` and `current_epoch`; of a session that was revoked `principal`, `lease_jti` and `expires_at`;
    of a rollback those, `size`, the leaves that are left, and `by`, the user of this host who accepted it; of a clock
    that was ahead those, `by`, `from`, the time of the newest evidence until then, and `to`, the time from then on; of
    an intent `outcome`; of a reload `settings`, names of those that came into force, and `needs_restart`, names of
    those that have changed in the file and did not, and `manifests`, action -> digest of each manifest that came into
    force, null where the action is gone; at a start `manifests` names all; of an action that was rolled back `from` and
    `to`, digests of its manifests, and `by`, the user of this host who did it; of kept values that were erased
    `count`, their `commitments`, and the `event_id` or the `principal` that was named; of a standing approval
    `principal`, `until`, and once added `max_calls` and `where` if it has them, once over the `calls` that used it."""
    seen: dict[str, str] | None = None
    """The result of a verifier that looked again for the effect of an intent: `verifier_kind`, `path`,
    `expected_sha256`, `state` and, if a file was read, `sha256`. In an IntentVerification, and in the IntentResolved
    after it."""
    attempts: dict[str, Any] | None = None
    """Refusals that the event stands for, `count` of them. With `has_proven` they are of one principal with one code,
    beyond 600 an hour, and all other fields are those of the last one. Else the callers had proven nothing
    (OperatorAuthFailed, ActionCall, LeaseIssued), or the key-value store could not look up their proof (ActionCall):
    as far as known the `uid` that made them or `is_many_users`, and of operators the `operator` whose API key the
    last of them had, and the `thumbprint` of the key that had signed its proof. Other fields are those that all of
    them had alike."""
    supposed_principal: str | None = None
    """In the ActionPreviewed of an operator: the principal whose call it is supposed to be."""
    key_purpose: str | None = None
    """lease, grant, receipt or checkpoint: which signing key was followed by another."""
    key_id: str | None = None
    previous_key_id: str | None = None
    signing_keys: dict[str, str] | None = None
    """Purpose -> id of the key that signs, when a gateway starts."""
    dev_mode: bool | None = None
    sandbox_degraded: bool | None = None
    prev_hash: str | UnsetType | None = UNSET
    """`sha256:<hex>` of the event before it, null in the first one; set by the ledger alone."""
