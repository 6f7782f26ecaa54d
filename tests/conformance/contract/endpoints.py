"""Endpoints of both sockets."""

from tests.conformance.contract.table import Table

BOTH = Table(
    "both-sockets",
    "Health on both sockets",
    {
        "healthz": "GET /healthz is the same on both sockets",
        "readyz": "GET /readyz is the same on both sockets",
        "json": "every body is JSON",
    },
)

CLIENT = Table(
    "client-endpoints",
    "Client socket endpoints",
    {
        "healthz": "GET /healthz: 200, `status` is ok",
        "readyz": "GET /readyz: every field; `egress_proxy` is null without a proxy",
        "leases": "POST /v1/leases: 200 with a lease",
        "jwks": "GET /.well-known/jwks.json: the public keys that leases are verified with",
        "actions": "GET /v1/actions: an array of summaries",
        "action": "GET /v1/actions/{action_id}: the manifest; 404 when it is not registered",
        "request-schema": "GET /v1/actions/{action_id}/schema/request: the schema",
        "request-schema-404": "… 404 for an unknown action, and for one that declares no schema",
        "execute": "POST /v1/actions/{action_id}/execute: 200 with the result",
        "execute-202": "POST /v1/actions/{action_id}/execute: 202 with the pending approval",
        "poll": "GET /v1/approvals/{approval_id}/poll: 200 with id and state",
        "receipt": "GET /v1/receipts/{receipt_id}: 200 with the receipt",
    },
)

LEASES = Table(
    "lease-request",
    "POST /v1/leases request",
    {
        "scopes": "an array of strings, required",
        "dpop_jwk": "an EC key on P-256 with x and y in base64url, required",
        "budgets": "optional; with `max_calls` the session's counter is there",
        "draining": "503 draining while the gateway drains",
        "unauthenticated": "nobody has to authenticate",
    },
)

EXECUTE = Table(
    "execute",
    "Execute",
    {
        "headers": "Authorization with the scheme DPoP and the lease, DPoP with the proof, a JSON content type",
        "proof-bound": "the proof is for POST and for the full URI of this action",
        "validated": "the body is validated against the action's request schema",
    },
)

POLL = Table(
    "poll",
    "Poll",
    {"own-session": "an agent may poll approvals of its own session only"},
)

RECEIPTS = Table(
    "receipt-retrieval",
    "Receipt retrieval",
    {
        "proof-bound": "the proof is for GET and for the full URI with this receipt's id",
        "any-lease": "any caller with a valid lease gets any receipt",
        "operators": "operators get the same body on the admin socket",
    },
)

ADMIN = Table(
    "admin-endpoints",
    "Admin socket endpoints",
    {
        "approvals": "GET /v1/approvals: `approvals` and `count`, newest first",
        "approvals-status": "GET /v1/approvals?status=: only those in this state; left out, all of them",
        "approvals-limit": "GET /v1/approvals?limit=: so many at most",
        "approval": "GET /v1/approvals/{approval_id}: the record with the plan; 404 when not found or expired",
        "approve": "POST …/approve: the execution result with `approval`; 404 when it is consumed",
        "approve-learn": "POST …/approve?learn_domain=: the result also has `learned_domain`",
        "deny": "POST …/deny with a reason: decision, trace, action, id, who denied and why",
        "deny-bare": "POST …/deny without a body",
        "events": "GET /v1/audit/events: `events` and `count`, by time descending",
        "events-trace_id": "filter `trace_id`",
        "events-action_id": "filter `action_id`",
        "events-principal": "filter `principal`",
        "events-session_id": "filter `session_id`",
        "events-decision": "filter `decision`: each of the four values",
        "events-after": "bound `after`, exclusive",
        "events-before": "bound `before`, exclusive",
        "events-limit": "GET /v1/audit/events?limit=: so many at most",
        "verify": "GET /v1/audit/verify: `intact`, `events_checked`, `broken_at` null",
        "verify-broken": "GET /v1/audit/verify: a changed event is found and named",
        "receipt": "GET /v1/receipts/{receipt_id}: the receipt",
        "metrics": "GET /metrics: OpenMetrics text with its exact content type",
        "status": "GET /v1/admin/status: the admin status",
        "status-not-audited": "GET /v1/admin/status leaves no event",
        "drain": "POST /v1/admin/drain: `draining`, `already_draining`, `in_flight_executions`",
        "revoke-all": "POST /v1/admin/revoke-all: `previous_epoch`, `current_epoch`",
        "epoch": "GET /v1/admin/epoch: `current_epoch`",
        "reload": "POST /v1/admin/reload: `manifests_loaded`, `policy_reloaded`, `reloaded_at`",
        "domains": "GET /v1/admin/domains: `domains`",
        "domains-add": "POST /v1/admin/domains: `domain`, `action_id`",
        "domains-remove": "DELETE /v1/admin/domains: `removed` true",
        "domains-clear": "DELETE /v1/admin/domains/clear: `cleared` true",
        "paths": "GET /v1/admin/paths: `paths`",
        "paths-add": "POST /v1/admin/paths: `path`, `action_id`",
        "paths-remove": "DELETE /v1/admin/paths: `removed` true",
        "paths-clear": "DELETE /v1/admin/paths/clear: `cleared` true",
        "policy": "GET /v1/admin/policy: the whole ACL",
        "policy-one": "GET /v1/admin/policy/{principal}: its actions, sinks and risk breakdown; 404 for a stranger",
        "policy-grant": "POST /v1/admin/policy/grant: `principal`, `actions`, `sinks`",
        "policy-revoke": "POST /v1/admin/policy/revoke: what remains, and sinks computed anew",
        "allowlist-add": "POST /v1/admin/policy/allowlist: `ok` true and the pair",
        "allowlist-remove": "DELETE /v1/admin/policy/allowlist: `ok` true and the pair",
        "receipt-keys": "GET /v1/receipt-keys: a JWKS of all receipt keys",
    },
)

TABLES = (BOTH, CLIENT, LEASES, EXECUTE, POLL, RECEIPTS, ADMIN)
