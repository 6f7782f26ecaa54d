"""The table of endpoints: method, path, socket(s), authentication, rate class, handler, roles. Reads like the contract.

frontend/api/dispatch.py finds the row of a request and does what the row says. The handler's signature declares
inputs and answers (frontend/api/operation.py); docs/openapi.json is made from both.
"""

from frontend.api.handlers import (
    actions,
    admin,
    approvals,
    audit,
    calls,
    document,
    execute,
    health,
    intents,
    kept_values,
    keys,
    learned,
    leases,
    metrics,
    policies,
    previews,
    receipts,
    sessions,
    standing,
    summaries,
    token_proofs,
    value_rules,
    webhooks,
)
from frontend.api.route import Auth, Rate, Route
from frontend.auth.roles import ANY_ROLE, APPROVERS, READERS

CLIENT, ADMIN, BOTH, METRICS = ("client",), ("admin",), ("client", "admin"), ("metrics",)
NONE, DEV, LEASE, OPERATOR, PIPELINE = Auth
SEE, VOTE, VIEW, ANY = READERS, APPROVERS, READERS | APPROVERS, ANY_ROLE
"""Roles of operators, where they are not those of the method (frontend/api/route.py `Route.roles`)."""


# fmt: off
ROUTES = (
    Route("GET",    "/healthz",                               BOTH,   NONE,     Rate.FREE,    health.healthz),
    Route("GET",    "/readyz",                                BOTH,   NONE,     Rate.FREE,    health.readyz),
    Route("GET",    "/openapi.json",                          BOTH,   DEV,      Rate.FREE,    document.openapi),
    Route("POST",   "/v1/leases",                             CLIENT, NONE,     Rate.LEASE,   leases.issue),
    Route("POST",   "/v1/proofs",                             CLIENT, NONE,     Rate.FREE,    token_proofs.judge),
    Route("GET",    "/.well-known/jwks.json",                 CLIENT, NONE,     Rate.FREE,    keys.lease_keys),
    Route("GET",    "/v1/actions",                            BOTH,   NONE,     Rate.FREE,    actions.summaries),
    Route("GET",    "/v1/actions/{action_id}",                BOTH,   NONE,     Rate.FREE,    actions.manifest),
    Route("GET",    "/v1/actions/{action_id}/schema/request", BOTH,   NONE,     Rate.FREE,    actions.request_schema),
    Route("POST",   "/v1/actions/{action_id}/execute",        CLIENT, PIPELINE, Rate.SESSION, execute.execute),
    Route("POST",   "/v1/actions/{action_id}/preview",        CLIENT, LEASE,    Rate.SESSION, previews.by_agent),
    Route("GET",    "/v1/calls",                              CLIENT, LEASE,    Rate.SESSION, calls.own),
    Route("GET",    "/v1/approvals/{approval_id}/poll",       CLIENT, LEASE,    Rate.SESSION, approvals.poll),
    Route("GET",    "/v1/receipts/{receipt_id}",              CLIENT, LEASE,    Rate.SESSION, receipts.by_agent),
    Route("GET",    "/v1/receipts/{receipt_id}",              ADMIN,  OPERATOR, Rate.READ,    receipts.by_operator),
    Route("GET",    "/v1/receipt-keys",                       ADMIN,  OPERATOR, Rate.READ,    keys.receipt_keys),
    Route("GET",    "/v1/approvals",                          ADMIN,  OPERATOR, Rate.READ,    approvals.listing, VIEW),
    Route("GET",    "/v1/approvals/{approval_id}",            ADMIN,  OPERATOR, Rate.READ,    approvals.detail, VIEW),
    Route("POST",   "/v1/approvals/{approval_id}/approve",    ADMIN,  OPERATOR, Rate.WRITE,   approvals.approve, VOTE),
    Route("POST",   "/v1/approvals/{approval_id}/deny",       ADMIN,  OPERATOR, Rate.WRITE,   approvals.deny, VOTE),
    Route("GET",    "/v1/audit/events",                       ADMIN,  OPERATOR, Rate.READ,    audit.events),
    Route("GET",    "/v1/audit/summary",                      ADMIN,  OPERATOR, Rate.READ,    summaries.summary),
    Route("GET",    "/v1/audit/verify",                       ADMIN,  OPERATOR, Rate.READ,    audit.verify),
    Route("GET",    "/v1/audit/checkpoint",                   ADMIN,  OPERATOR, Rate.READ,    audit.checkpoint),
    Route("GET",    "/v1/audit/proof",                        ADMIN,  OPERATOR, Rate.READ,    audit.proof),
    Route("GET",    "/v1/audit/consistency",                  ADMIN,  OPERATOR, Rate.READ,    audit.consistency),
    Route("GET",    "/metrics",                               ADMIN,  OPERATOR, Rate.READ,    metrics.metrics),
    Route("GET",    "/v1/admin/status",                       ADMIN,  OPERATOR, Rate.READ,    admin.status, ANY),
    Route("POST",   "/v1/admin/drain",                        ADMIN,  OPERATOR, Rate.WRITE,   admin.drain),
    Route("GET",    "/v1/admin/intents",                      ADMIN,  OPERATOR, Rate.READ,    intents.listing),
    Route("GET",    "/v1/admin/intents/{intent_id}",          ADMIN,  OPERATOR, Rate.READ,    intents.show),
    Route("POST",   "/v1/admin/intents/{intent_id}/verify",   ADMIN,  OPERATOR, Rate.WRITE,   intents.verify),
    Route("POST",   "/v1/admin/intents/{intent_id}/resolve",  ADMIN,  OPERATOR, Rate.WRITE,   intents.resolve),
    Route("GET",    "/v1/admin/webhooks",                     ADMIN,  OPERATOR, Rate.READ,    webhooks.listing),
    Route("POST",   "/v1/admin/webhooks/{endpoint}/test",     ADMIN,  OPERATOR, Rate.WRITE,   webhooks.test),
    Route("POST",   "/v1/admin/webhooks/{endpoint}/redeliver", ADMIN,  OPERATOR, Rate.WRITE,   webhooks.redeliver),
    Route("POST",   "/v1/admin/evidence/erase",               ADMIN,  OPERATOR, Rate.WRITE,   kept_values.erase),
    Route("POST",   "/v1/admin/reload",                       ADMIN,  OPERATOR, Rate.WRITE,   admin.reload),
    Route("POST",   "/v1/admin/revoke-all",                   ADMIN,  OPERATOR, Rate.WRITE,   admin.revoke_all),
    Route("GET",    "/v1/admin/epoch",                        ADMIN,  OPERATOR, Rate.READ,    admin.epoch),
    Route("GET",    "/v1/admin/sessions",                     ADMIN,  OPERATOR, Rate.READ,    sessions.listing),
    Route("POST",   "/v1/admin/sessions/{session_id}/revoke", ADMIN,  OPERATOR, Rate.WRITE,   sessions.revoke),
    Route("GET",    "/v1/admin/standing",                     ADMIN,  OPERATOR, Rate.READ,    standing.listing, VIEW),
    Route("POST",   "/v1/admin/standing",                     ADMIN,  OPERATOR, Rate.WRITE,   standing.add, VOTE),
    Route("DELETE", "/v1/admin/standing/{standing_id}",       ADMIN,  OPERATOR, Rate.WRITE,   standing.revoke, VOTE),
    Route("POST",   "/v1/admin/actions/{action_id}/preview", ADMIN,  OPERATOR, Rate.READ,    previews.by_operator, SEE),
    Route("GET",    "/v1/admin/policy",                       ADMIN,  OPERATOR, Rate.READ,    policies.show),
    Route("GET",    "/v1/admin/policy/{principal}",           ADMIN,  OPERATOR, Rate.READ,    policies.show_principal),
    Route("POST",   "/v1/admin/policy/explain",               ADMIN,  OPERATOR, Rate.READ,    policies.explain, SEE),
    Route("POST",   "/v1/admin/policy/grant",                 ADMIN,  OPERATOR, Rate.WRITE,   policies.grant),
    Route("POST",   "/v1/admin/policy/revoke",                ADMIN,  OPERATOR, Rate.WRITE,   policies.revoke),
    Route("POST",   "/v1/admin/policy/allowlist",             ADMIN,  OPERATOR, Rate.WRITE,   policies.allow),
    Route("DELETE", "/v1/admin/policy/allowlist",             ADMIN,  OPERATOR, Rate.WRITE,   policies.disallow),
    Route("GET",    "/v1/admin/policy/thresholds",            ADMIN,  OPERATOR, Rate.READ,    value_rules.thresholds),
    Route("POST",   "/v1/admin/policy/thresholds",           ADMIN,  OPERATOR, Rate.WRITE,   value_rules.set_threshold),
    Route("DELETE", "/v1/admin/policy/thresholds",        ADMIN,  OPERATOR, Rate.WRITE,   value_rules.clear_thresholds),
    Route("GET",    "/v1/admin/policy/caps",                  ADMIN,  OPERATOR, Rate.READ,    value_rules.caps),
    Route("POST",   "/v1/admin/policy/caps",                  ADMIN,  OPERATOR, Rate.WRITE,   value_rules.set_cap),
    Route("DELETE", "/v1/admin/policy/caps",                  ADMIN,  OPERATOR, Rate.WRITE,   value_rules.clear_caps),
    Route("GET",    "/v1/admin/domains",                      ADMIN,  OPERATOR, Rate.READ,    learned.domains),
    Route("POST",   "/v1/admin/domains",                      ADMIN,  OPERATOR, Rate.WRITE,   learned.add_domain),
    Route("DELETE", "/v1/admin/domains",                      ADMIN,  OPERATOR, Rate.WRITE,   learned.remove_domain),
    Route("DELETE", "/v1/admin/domains/clear",                ADMIN,  OPERATOR, Rate.WRITE,   learned.clear_domains),
    Route("GET",    "/v1/admin/paths",                        ADMIN,  OPERATOR, Rate.READ,    learned.paths),
    Route("POST",   "/v1/admin/paths",                        ADMIN,  OPERATOR, Rate.WRITE,   learned.add_path),
    Route("DELETE", "/v1/admin/paths",                        ADMIN,  OPERATOR, Rate.WRITE,   learned.remove_path),
    Route("DELETE", "/v1/admin/paths/clear",                  ADMIN,  OPERATOR, Rate.WRITE,   learned.clear_paths),
)
SCRAPED = (
    Route("GET",    "/metrics",                               METRICS, NONE,    Rate.SCRAPE,  metrics.scrape),
)
"""All that the socket of `[metrics]` serves: neither the merged address nor the description of the interface,
which is of what agents and operators ask."""
# fmt: on
