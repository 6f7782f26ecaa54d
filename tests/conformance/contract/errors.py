"""Errors and failure conditions."""

from tests.conformance.contract.table import Table

FORMAT = Table(
    "error-format",
    "Errors: format",
    {
        "json": "an error is JSON with `error`",
        "deny_reason": "policy_denied has deny_reason, without control characters, 500 characters at most",
        "5xx-code-only": "a 5xx has the code and nothing else; the log has the rest under the trace id",
    },
)

EXECUTE = Table(
    "execute-errors",
    "Execute errors",
    {
        "401-lease_expired": "the lease is over",
        "401-invalid_lease": "the lease is malformed, or not ours",
        "401-invalid_dpop": "the proof does not hold",
        "401-replay_detected": "the proof was used before",
        "401-missing_auth_header": "Authorization or DPoP is missing",
        "403-policy_denied": "policy denied, with deny_reason",
        "403-action_not_registered": "the module's digest is not in the trust registry",
        "403-action_digest_mismatch": "the module's bytes have another digest than the manifest says",
        "403-budget_exhausted": "no call is left; budgets are fixed when the lease is issued",
        "403-budget_session_not_found": "the session's counter is not in the store",
        "404-action_not_found": "no such action",
        "413": "the body is over 1 MB",
        "422-schema_violation": "the body breaks the request schema",
        "500-evidence_persistence_failed": "it ran and left no evidence: an unresolved intent, and no refund",
        "500-internal_error": "a fault of the gateway",
        "502-provider-error": "action_execution_failed: the provider returned an error",
        "502-fuel": "action_execution_failed: the fuel limit",
        "502-memory": "action_execution_failed: the memory limit",
        "502-timeout": "action_execution_failed: the time limit",
        "502-io-calls": "action_execution_failed: the I/O call limit",
        "502-unreachable": "action_execution_failed: the target can't be reached",
        "502-dns": "action_execution_failed: the name does not resolve",
        "502-egress": "action_execution_failed: the domain is not one that the call may go to",
        "502-proxy": "action_execution_failed: the egress proxy refuses",
        "503-draining": "the gateway drains",
        "503-policy_engine_unavailable": "the policy engine can't be reached",
        "503-policy_engine_timeout": "the policy engine did not answer in time",
        "503-replay_cache_unavailable": "the key-value store can't be reached",
        "503-budget_store_unavailable": "the budget can't be read or written",
        "503-clock_error": "the system clock is wrong",
    },
)

OTHERS = Table(
    "other-errors",
    "Errors of other endpoints",
    {
        "leases-400": "a request that is not one: 400",
        "leases-403": "an identity that may not: 403",
        "leases-429": "too many: 429 rate_limit_exceeded",
        "leases-503-identity": "no identity to be had: 503",
        "leases-503-draining": "503 draining",
        "poll-401": "authentication failed: 401",
        "poll-403": "another session's approval: 403",
        "poll-404": "no such approval: 404",
        "receipt-401": "authentication failed: 401",
        "receipt-404": "no such receipt: 404",
        "receipt-503": "the ledger can't be read: 503",
        "approve-404-unknown": "no such approval: 404",
        "approve-404-consumed": "consumed already: 404",
        "approve-404-expired": "expired: 404",
        "approval-404-unknown": "no such approval: 404",
        "approval-404-expired": "expired: 404",
        "domains-400": "invalid_domain",
        "domains-409": "domain_already_exists",
        "policy-404-principal": "principal_not_found",
        "policy-400-action": "unknown_action",
        "policy-400-input": "invalid_input",
        "policy-404-action": "action_not_found",
        "policy-404-entry": "allowlist_entry_not_found",
        "reload-500": "reload_failed, and what was in force stays",
    },
)

FAILURES = Table(
    "failures",
    "Failure conditions",
    {
        "store-down-execute": "without the key-value store execute is 503",
        "store-down-leases": "without the key-value store leases are still issued",
        "policy-down": "without the policy engine execute is 503",
        "proxy-down": "without the egress proxy actions of its profile are 502",
        "proxy-down-readiness": "without the egress proxy readiness is degraded, and other actions run",
    },
)

TABLES = (FORMAT, EXECUTE, OTHERS, FAILURES)
