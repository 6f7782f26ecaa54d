"""Resources and their fields."""

from tests.conformance.contract.table import Table

LEASE = Table(
    "lease",
    "Lease",
    {
        "lease_jwt": "a JWT signed by a published lease key, bound to the caller's key by its thumbprint",
        "session_id": "a text that begins with `ses_`",
        "lease_jti": "a text that begins with `lea_`",
        "expires_at": "an ISO 8601 time in UTC, five minutes ahead by default",
    },
)

SUMMARY = Table(
    "action-summary",
    "Action summary",
    {
        "action_id": "the id of the action",
        "version": "a semantic version",
        "risk_level": "low, medium, high or critical",
        "description": "a text",
        "database_mode": "always null",
        "no-details": "no digest, no schema and no name of a secret is in a summary",
    },
)

MANIFEST = Table(
    "action-manifest",
    "Action manifest",
    {
        "provider-module": "a reference to the provider module, with its digest",
        "required-imports": "what the module may import",
        "resource-limits": "the limits, as an object",
        "request-schema": "the request's JSON Schema",
        "egress-profile": "where it may go: the profile's name and the domains",
        "secrets": "a declaration for each secret, never a value",
        "risk-level": "the risk level",
        "side-effects": "declared side effects; the sinks derive from them",
        "verifier-kind": "the kind of its verifier",
        "limit-fuel": "`resource_limits.fuel`",
        "limit-memory_mb": "`resource_limits.memory_mb`",
        "limit-timeout_seconds": "`resource_limits.timeout_seconds`",
        "limit-max_io_calls": "`resource_limits.max_io_calls`",
        "secret-required": "a secret's declaration has `name` and the flag `required`",
        "egress-proxy_allowlist": "an action with the egress profile `proxy_allowlist` goes out through the proxy",
    },
)

RESULT = Table(
    "execution-result",
    "Execution result",
    {
        "trace_id": "a text, the same as in the audit event",
        "action_id": "the action that ran",
        "grant_id": "a text that begins with `grant_`, the same as in the receipt",
        "receipt_id": "a text that begins with `rcpt_`; the receipt is there",
        "output": "what the provider returned",
        "verification_outcome": "one of the five outcomes",
        "verification": "the outcome once more, and whether the call was fully successful",
        "runtime": "`duration_ms`, `exit_code` and `fuel_consumed`, integers",
        "approval": "only after a person's approval: who approved, and the approval's id",
        "learned_domain": "only when it was approved with `learn_domain`: the domain",
        "is_fully_successful": "true for verified and declared unverifiable, false for anything else",
    },
)

PENDING = Table(
    "pending-approval",
    "Pending approval response",
    {
        "decision": "the constant `pending_approval`",
        "approval_id": "a text that begins with `apr_`",
        "request_hash": "`sha256:` and 64 hex digits",
        "trace_id": "a text, the same as in the audit event",
    },
)

APPROVAL = Table(
    "approval",
    "Approval",
    {
        "poll-approval_id": "the poll says which approval it is",
        "poll-state": "the poll says the state",
        "item-approval_id": "an item of the operators' list has the id",
        "item-action_id": "an item has the action",
        "item-state": "an item has the state",
        "detail-lifecycle": "the detail has when it was made, by whom and in which state it is",
        "detail-action_version": "the detail has the action's version",
        "detail-risk_level": "the detail has the risk level",
        "detail-targets": "the detail has the targets that are approved",
        "detail-secret-names": "the detail has the names of secrets, and no value",
        "detail-egress-profile": "the detail has the egress profile",
        "detail-budget-snapshot": "the detail has the budget as it was",
        "detail-verifier_kind": "the detail has the verifier's kind",
        "detail-provider_module_digest": "the detail has the digest of the module that will run",
        "detail-plan_hash": "the detail has the hash of the plan",
        "detail-expiry": "the detail has when it expires",
        "stored-plan-runs": "what runs is the plan that was stored, whatever the manifest says by then",
        "bound-to-session": "the agents' endpoints show it to the session that made it, and to no other",
    },
)

RECEIPT = Table(
    "receipt",
    "Receipt",
    {
        "receipt_id": "a text that begins with `rcpt_`, then a UUID of version 7",
        "grant_id": "the grant that let it run",
        "provider_module_digest": "`sha256:` and the digest of the module that ran",
        "provider_receipt": "an object: what the provider returned",
        "normalized_result": "an object with `kind`",
        "kind-success": "`kind` success, with a `summary`",
        "kind-provider_failure": "`kind` provider_failure, with a `reason`",
        "kind-timeout": "`kind` timeout: the call outlived its time",
        "kind-cancelled": "`kind` cancelled: the gateway stopped before the call ended",
        "kind-internal_error": "`kind` internal_error: the worker died",
        "verification_outcome": "an object with `status`; verified comes with `evidence`, failed with `reason`",
        "effect_evidence": "an array; what the verifier saw, or nothing",
        "result_hash": "`sha256:` and the hash of the signed bytes",
        "receipt_signature": "hex of an Ed25519 signature over the canonical envelope, which a stranger can check",
        "signing_key_id": "the `kid` of a published receipt key",
        "started_at": "an ISO 8601 time in UTC",
        "finished_at": "an ISO 8601 time in UTC, not before `started_at`",
        "failure_class-null": "null on full success",
        "failure_class-provider_error": "provider_error: the provider, or its upstream, failed",
        "failure_class-timeout": "timeout",
        "failure_class-policy_violation": "policy_violation: a limit of the manifest was reached",
        "failure_class-verification_failed": "verification_failed",
        "failure_class-internal_error": "internal_error",
        "status-verified": "signature_status `verified`",
        "status-unsigned": "signature_status `unsigned`, for a receipt from before signing",
        "status-unknown_kid": "signature_status `unknown_kid`, for a key that is not published",
        "status-signature_invalid": "signature_status `signature_invalid`, for a receipt that was changed",
        "status-not-stored": "signature_status is found out when asked, and is not part of what is stored",
        "sdk-is_fully_successful": "the public client derives full success from kind and status alone",
    },
)

EVENT = Table(
    "audit-event",
    "Audit event",
    {
        "trace_id": "the trace of the call",
        "action_id": "the action",
        "decision-allow": "decision `allow`",
        "decision-deny": "decision `deny`",
        "decision-error": "decision `error`",
        "decision-pending_approval": "decision `pending_approval`",
        "principal": "who asked",
        "session_id": "the session",
        "timestamp": "an ISO 8601 time in UTC",
        "prev_hash": "the hash of the event before it",
        "type-AdminDrain": "a drain leaves an event of the type AdminDrain",
        "type-AdminReload": "a reload leaves an event of the type AdminReload",
        "revoke-all": "revoke-all leaves an event",
        "receipt-keys": "a look at the receipt keys leaves an event",
        "allowlist": "a change of the allowlist leaves an event",
    },
)

INTENT = Table(
    "execution-intent",
    "Execution intent",
    {
        "before-dispatch": "the intent is written before the provider runs",
        "resolved-by-receipt": "its receipt resolves it",
        "intent_id": "a text that begins with `intent_`",
        "trace_id": "the trace of the call",
        "action_id": "the action",
        "principal": "who asked",
        "dispatched_at": "an ISO 8601 time in UTC",
        "age_seconds": "an integer",
        "grant_id": "the grant",
        "provider_module": "`sha256:` and the module's digest",
    },
)

LEARNED_DOMAIN = Table(
    "learned-domain",
    "Learned domain",
    {
        "domain": "the domain",
        "action_id": "the action that may go there",
        "source-cli": "`source` is `cli` for one that an operator added",
        "source-approval": "`source` is `approval` for one that came with an approval",
        "added_at": "an ISO 8601 time in UTC",
        "joins-allowlist": "calls that go there are not held for the domain any more",
    },
)

LEARNED_PATH = Table(
    "learned-path",
    "Learned path",
    {
        "path": "the path",
        "action_id": "the action that may use it",
        "source": "`source` is `cli`",
        "added_at": "an ISO 8601 time in UTC",
        "used-by-files": "calls of the filesystem provider that name it are not held any more, and write it",
    },
)

ACL = Table(
    "policy-acl",
    "Policy ACL",
    {
        "actions": "each principal has its actions",
        "sinks": "each principal has its sinks",
        "sinks-derived": "sinks follow from the actions' side effects; nobody can set them",
        "policy_version": "the whole has a version, a text",
        "principals": "the whole maps names of principals to their entries",
        "risk_breakdown": "one principal's view sorts its actions under low, medium, high and critical",
    },
)

ALLOWLIST = Table(
    "allowlist-entry",
    "Approval allowlist entry",
    {"bypasses-hold": "for this action and this principal there is no hold, and for others there is"},
)

EPOCH = Table(
    "revocation-epoch",
    "Revocation epoch",
    {
        "non-negative": "a whole number, never below 0",
        "carried": "a lease carries the epoch in force at its issue; one of a prior epoch is invalid",
    },
)

STATUS = Table(
    "admin-status",
    "Admin status",
    {
        "status": "ok, degraded or draining",
        "version": "a text",
        "uptime_seconds": "an integer that grows",
        "actions_registered": "an integer: how many actions there are",
        "pending_approvals": "an integer: how many holds wait",
        "revocation_epoch": "an integer",
        "draining": "a flag",
        "in_flight_executions": "an integer: how many calls are under way",
        "dependencies": "`redis` and `opa`, flags",
        "webhooks": "`active`, a flag, and `pending_deliveries`, an integer",
        "unresolved_intents": "an integer: how many intents have no receipt",
    },
)

TABLES = (
    LEASE, SUMMARY, MANIFEST, RESULT, PENDING, APPROVAL, RECEIPT, EVENT, INTENT, LEARNED_DOMAIN, LEARNED_PATH, ACL,
    ALLOWLIST, EPOCH, STATUS,
)  # fmt: skip
