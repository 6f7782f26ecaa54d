"""Behaviour rules of the endpoints."""

from tests.conformance.contract.table import Table

BEHAVIOUR = Table(
    "behaviour",
    "Behaviour rules 1 to 5",
    {
        "1-drain-refuses": "after a drain new calls and leases get 503 draining",
        "1-drain-counts": "in_flight_executions falls to 0 when running calls have ended",
        "2-reload-swaps": "a reload swaps manifests and policy as one",
        "2-reload-keeps": "after a failed reload everything that was in force before is still in force",
        "3-domains-join": "an added domain counts for the next call",
        "3-domains-clear": "after a clear only the manifest's own domains count",
        "3-live-sync": "with live sync, added domains are written to the egress proxy's allowlist file",
        "3-live-sync-clear": "with live sync, a clear rewrites that file to the manifests' domains",
        "4-grant-validates": "an unknown action is refused and nothing is written",
        "4-revoke-last": "with its last action a principal's entry is gone",
        "5-ids-validated": "empty, overlong and odd ids are 400 invalid_input",
        "5-action-exists": "an action that is not registered is refused",
        "5-immediate": "the very next call is answered by the new allowlist, in both directions",
        "5-last-entry": "with its last entry the action's key is gone from the policy's data",
        "5-trust-binds": "an allowlisted pair with an untrusted module is denied",
        "5-acl-binds": "an allowlisted pair that the ACL does not have is denied",
        "5-scope-binds": "an allowlisted pair without a required scope is denied",
        "5-budget-binds": "an allowlisted pair without a call left is denied",
        "5-sink-binds": "an allowlisted pair with a sink that is not granted is denied",
    },
)

METRICS = Table(
    "metrics",
    "Behaviour rule 6: metrics",
    {
        "action-calls": "a counter of calls by action and outcome",
        "dpop-rejections": "a counter of refused proofs",
        "policy-decisions": "a counter of policy's decisions",
        "provider-duration": "a histogram of how long providers ran",
        "budget-exhausted": "a counter of exhausted budgets",
        "audit-write-errors": "a counter of audit writes that failed",
        "response-schema-violations": "a counter of results that broke their schema",
        "policy-engine-duration": "a histogram of the policy engine's requests by operation",
        "store-duration": "a histogram of the key-value store's requests by operation",
        "unresolved-intents": "the gauge `gate_unresolved_intents`",
        "oldest-pending-approval": "a gauge of the oldest pending approval's age",
        "webhook-outbox": "a gauge of what waits in the webhook outbox",
        "ledger-write-duration": "a histogram of writes to the ledger",
        "readiness-degraded": "readiness that is not ready, by reason",
        "webhook-drops": "a counter of dropped webhooks",
        "webhook-counts": "the webhook families move when webhooks wait or are dropped",
    },
)

TABLES = (BEHAVIOUR, METRICS)
