"""Limits and versioning."""

from tests.conformance.contract.table import Table

LIMITS = Table(
    "limits",
    "Limits",
    {
        "body": "1 MB a request: 1,048,576 bytes pass, one more does not",
        "lease-rate": "50 leases a second",
        "write-rate": "20 writes of operators a second, one bucket for all of them",
        "read-rate": "100 reads of operators a second, one bucket for all of them",
        "approvals-default": "50 approvals a list",
        "approvals-max": "200 approvals a list",
        "events-default": "100 events a query",
        "events-max": "1000 events a query",
        "deny_reason": "500 characters",
        "policy-timeout": "1000 ms for the policy engine",
        "approval-ttl": "five minutes for a hold",
        "lease-lifetime": "five minutes for a lease",
        "secrets-cache": "a changed secrets file counts at once; the cache is keyed by the file",
        "graceful-shutdown": "a termination signal leaves running calls at least 30 seconds",
    },
)

CALL_LIMITS = Table(
    "call-limits",
    "Limits of an action",
    {
        "fuel": "over `fuel`: 502",
        "memory_mb": "over `memory_mb`: 502",
        "timeout_seconds": "over `timeout_seconds` of wall clock: 502",
        "max_io_calls": "over `max_io_calls`: 502",
    },
)

BUDGET = Table(
    "budget",
    "Budget",
    {
        "decremented": "each call takes one of max_calls, atomically: of many at once no more than that run",
        "exhausted": "with none left: 403 budget_exhausted",
    },
)

VERSIONING = Table(
    "versioning",
    "Versioning",
    {
        "1-prefix": "resources are below /v1; the JWKS is at /.well-known/jwks.json",
        "2-service-version": "status has the service's version; summaries have the actions'",
        "3-database_mode": "database_mode is null in every summary",
        "4-policy_version": "the policy's data carries a policy_version",
        "5-rotation": "after a rotation old receipts still verify, by the kid they name",
        "5-unsigned": "a receipt from before signing has no signature",
    },
)

TABLES = (LIMITS, CALL_LIMITS, BUDGET, VERSIONING)
