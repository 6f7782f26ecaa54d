"""The sentences of the document that no struct and no handler has."""

from frontend.api.route import Auth

INFO = """\
The gateway stands between agents and their side effects. An agent asks for a lease, calls actions with it, and gets a
signed receipt for everything that ran; operators decide what waits for a person, and read the evidence.

**Where it listens.** Two Unix sockets: one for clients, one for operators. In dev mode (`gateway dev`), or where
`listen_http_addr` and `unsafe_expose_http` are set, one TCP address serves both. Each operation says on which sockets
it is; on the other one its path is 404. To begin: `curl --unix-socket /run/gateway/gate.sock http://localhost/healthz`.

**Who is asking.** Both kinds of caller send two headers (DPoP, RFC 9449): `Authorization: DPoP <token>`, where the
token is an agent's lease or an operator's key, and `DPoP: <proof>`, a JWT that is made anew for each request. It is
signed (ES256) with the P-256 key that the token is bound to. Its header is `{"typ": "dpop+jwt", "alg": "ES256", "jwk":
<public key>}`, its claims are `htm` (the method), `htu` (the configured `public_base_url` and the path, without query;
never what `Host` says, on a Unix socket neither), `iat` (Unix seconds, at most 60 s old), `jti` (unique, at most 128
characters) and `ath` (base64url of the SHA-256 of the token). No proof is taken twice, not even on a retry.

**Errors.** Every error has a JSON body `{"error": code}`; read errors by code, never by text. 4xx bodies may say more
in `message`, `reason`, `deny_reason` and others; 5xx bodies never do, and the log has the cause under the trace id. 401
carries `WWW-Authenticate: DPoP`; 429, and 503 where it is known, `Retry-After` in seconds; 502 of an action the id
of its receipt, `X-Receipt-Id`, and where its manifest says so the provider's words, `X-Provider-Error`, a JSON string.
It also says why the call failed, `X-Failure`, and whether it may have had its effect, `X-May-Have-Run`: `no`, `yes` or
`unknown`. After `no` the call may be repeated.
Every path answers 405 `method_not_allowed` with `Allow` to another method; every unknown path is 404 `not_found`.

**Order.** Path, method, media type, credentials, rate, identifiers in the path, query, body: who may not ask learns
nothing of what exists. HEAD is answered where GET is. Paths are compared as they are sent: a trailing slash, an empty
segment, a dot segment or a percent-encoded letter make another path.

**More** is in `docs/api.md` (requests to copy), `docs/errors.md` (the response to each code) and `docs/decisions/`.
"""

TAGS = {
    "health": "Whether the gateway lives and works; on both sockets, for load balancers and people.",
    "leases": "How an agent begins: a short-lived token, bound to its key.",
    "actions": "What can be called, and the call.",
    "approvals": "Calls that wait for a person.",
    "receipts": "What came of each call, signed.",
    "token_proofs": "Proofs of clients of the edge's `/mcp`, which the edge has judged here.",
    "calls": "An agent's own calls, and what became of them.",
    "audit": "Everything that was decided, in one chain.",
    "summaries": "Counts of decisions by time, action and principal.",
    "keys": "Public keys, to check leases and receipts with.",
    "admin": "Operating the gateway.",
    "intents": "Calls that were dispatched, and whose effect is unknown.",
    "kept_values": "Values of requests that evidence keeps, and erasing them.",
    "sessions": "Agents that have a lease now, and ending one before its time.",
    "standing": "Approvals of calls to come, each signed by its operator.",
    "webhooks": "Endpoints that are notified: what waits, what was given up, trying one and sending again.",
    "learned": "Domains and paths that operators added to what manifests allow.",
    "policies": "Who may call what, and what need not wait for a person.",
    "value_rules": "Bounds of values of a request, and of their sums.",
    "metrics": "Numbers for Prometheus.",
    "document": "This document, in dev mode.",
}
"""By handler module; what has no row here is tagged with its module's name all the same."""

SCHEMES = {
    "lease": {
        "type": "http",
        "scheme": "DPoP",
        "description": "`Authorization: DPoP <lease_jwt>`, beside a proof by the key that the lease is bound to.",
    },
    "operator": {
        "type": "http",
        "scheme": "DPoP",
        "description": "`Authorization: DPoP key-<name>-<32 hex digits>`, an operator's key, beside a proof by the key "
        "whose thumbprint the operator is configured with (`dpop_jkt`).",
    },
    "proof": {
        "type": "apiKey",
        "in": "header",
        "name": "DPoP",
        "description": "A fresh proof for this method and URL (RFC 9449 §4.2), used once.",
    },
}
SECURITY: dict[Auth, list[dict[str, list[str]]]] = {
    Auth.LEASE: [{"lease": [], "proof": []}],
    Auth.PIPELINE: [{"lease": [], "proof": []}],
    Auth.OPERATOR: [{"operator": [], "proof": []}],
    Auth.NONE: [],
    Auth.DEV: [],
}

SERVERS = {
    "merged": {
        "url": "http://127.0.0.1:3000",
        "description": "dev mode: every operation on one TCP address",
    },
    "client": {
        "url": "http://localhost",
        "description": "client socket, a Unix socket: `listen_uds_path`, /run/gateway/gate.sock",
    },
    "admin": {
        "url": "http://localhost",
        "description": "admin socket, a Unix socket: `listen_admin_uds_path`, /run/gateway/gate-admin.sock",
    },
}

RATES = {
    "lease": "At most 50 a second, shared by the users of the host and the principals behind the edge. "
    "At most 5 a second for users without an identity here.",
    "write": "At most 20 a second of all changes by operators, who share them.",
    "read": "At most 100 a second of all questions by operators, who share them.",
    "session": "At most `limits.session_requests_per_second` of a session, 200 by default.",
}
"""By rate class; 429 `rate_limit_exceeded` beyond."""

HEADER_PARAMETERS = {
    "execute_execute": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A quoted string or a token, 1 to 255 characters. The same call again under it is answered "
            "with the outcome of the first, for `limits.idempotency_seconds`.",
            "schema": {"type": "string"},
            "example": '"8e03978e-40d5-43e8-bc93-6894a57f9324"',
        }
    ]
}
"""Headers that an operation reads beside those of its credentials, by operation."""

GATECTL = {
    "actions_manifest": "gatectl actions show {action_id}",
    "actions_summaries": "gatectl actions list",
    "admin_drain": "gatectl drain --wait",
    "admin_epoch": "gatectl epoch",
    "admin_reload": "gatectl reload",
    "admin_revoke_all": "gatectl revoke-all",
    "admin_status": "gatectl status",
    "approvals_approve": "gatectl approvals approve {approval_id}",
    "approvals_deny": "gatectl approvals deny {approval_id} --reason 'not without a ticket'",
    "approvals_detail": "gatectl approvals show {approval_id}",
    "approvals_listing": "gatectl approvals list --status pending",
    "audit_checkpoint": "gatectl audit checkpoint",
    "audit_events": "gatectl audit events --limit 20",
    "audit_proof": "gatectl receipts bundle rcpt_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    "audit_verify": "gatectl audit verify",
    "execute_execute": "gatectl execute {action_id} --request request.json --wait",
    "intents_listing": "gatectl intents list --limit 20",
    "intents_resolve": "gatectl intents resolve {intent_id} --outcome happened --note 'the bank has it'",
    "intents_show": "gatectl intents show {intent_id}",
    "intents_verify": "gatectl intents resolve {intent_id} --verify",
    "kept_values_erase": "gatectl evidence erase --principal dev:anonymous --before 90d --reason 'asked for'",
    "sessions_listing": "gatectl sessions list",
    "sessions_revoke": "gatectl sessions revoke {session_id}",
    "standing_listing": "gatectl approvals standing list",
    "standing_add": "gatectl approvals standing add payment_transfer --principal agent --until 2h --max-calls 20",
    "standing_revoke": "gatectl approvals standing revoke {standing_id}",
    "webhooks_listing": "gatectl webhooks list --endpoint chat",
    "webhooks_redeliver": "gatectl webhooks redeliver {endpoint}",
    "webhooks_test": "gatectl webhooks test {endpoint}",
    "keys_receipt_keys": "gatectl receipts keys",
    "learned_add_domain": "gatectl domains add payment_transfer api.example.com",
    "learned_add_path": "gatectl paths add file_write 'notes/**'",
    "learned_clear_domains": "gatectl domains clear",
    "learned_clear_paths": "gatectl paths clear",
    "learned_domains": "gatectl domains list",
    "learned_paths": "gatectl paths list",
    "learned_remove_domain": "gatectl domains remove payment_transfer api.example.com",
    "learned_remove_path": "gatectl paths remove file_write 'notes/**'",
    "metrics_metrics": "gatectl metrics",
    "value_rules_thresholds": "gatectl policy thresholds list",
    "value_rules_set_threshold": "gatectl policy thresholds set payment_transfer /amount_cents --hold-above 10000",
    "value_rules_clear_thresholds": "gatectl policy thresholds clear payment_transfer /amount_cents",
    "value_rules_caps": "gatectl policy caps list",
    "value_rules_set_cap": "gatectl policy caps set payment_transfer /amount_cents --per principal --window 86400",
    "value_rules_clear_caps": "gatectl policy caps clear payment_transfer",
    "policies_allow": "gatectl allowlist add payment_transfer dev:anonymous",
    "policies_disallow": "gatectl allowlist remove payment_transfer dev:anonymous",
    "policies_explain": "gatectl policy explain dev:anonymous text_digest",
    "policies_grant": "gatectl policy grant dev:anonymous text_digest",
    "policies_revoke": "gatectl policy revoke dev:anonymous text_digest",
    "policies_show": "gatectl policy show",
    "policies_show_principal": "gatectl policy show {principal}",
    "receipts_by_agent": "gatectl receipts show {receipt_id}",
}
"""By operation: the command of the client that does the same."""

HEADERS = {
    "WWW-Authenticate": {
        "description": "What to authenticate with (RFC 9449 §7.1).",
        "required": True,
        "schema": {"type": "string"},
        "example": "DPoP",
    },
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "minimum": 1},
        "example": 1,
    },
    "X-Trace-Id": {
        "description": "Id of the request, as its events, its receipt and the log have it; of a decision on a held "
        "call that of the call. With every answer.",
        "schema": {"type": "string"},
        "example": "trc_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    },
    "Idempotent-Replayed": {
        "description": "`true`: the answer is the outcome of an earlier call under the same `Idempotency-Key`.",
        "schema": {"type": "string"},
        "example": "true",
    },
    "X-Receipt-Id": {
        "description": "The receipt of a call that ran.",
        "schema": {"type": "string"},
        "example": "rcpt_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    },
    "X-Intent-Id": {
        "description": "The intent of a call without a receipt.",
        "schema": {"type": "string"},
        "example": "intent_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    },
    "Allow": {
        "description": "With 405: the methods that the path has.",
        "schema": {"type": "string"},
        "example": "GET, HEAD",
    },
}

ERROR = {
    "type": "object",
    "description": "What every error answers. 5xx bodies have the code alone.",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "The code: docs/errors.md."},
        "message": {
            "type": "string",
            "description": "With `invalid_request` the field and what it must be; with others what there is to say.",
        },
        "reason": {
            "type": "string",
            "description": "With `schema_violation`: place and expectation. With `bad_request`: what is not HTTP. "
            "With `budget_exhausted`: the quota of the caller that is used up, if it is none of the session's.",
        },
        "deny_reason": {
            "type": "string",
            "description": "With `policy_denied`: why; control characters stripped, at most 500 characters.",
            "maxLength": 500,
        },
        "rule": {"type": "string", "description": "With `policy_denied`: the rule of the policy that decided."},
        "violations": {
            "type": "array",
            "description": "With `schema_violation`, where there are several: place and expectation of each.",
            "items": {"type": "string"},
            "maxItems": 8,
        },
        "segment": {"type": "string", "description": "With `sealed`: the name of the file to look into."},
        "did_you_mean": {
            "type": "array",
            "description": "With `action_not_found`: registered ids that are close, the closest first.",
            "items": {"type": "string"},
            "maxItems": 3,
        },
    },
}
EXTRAS = {
    "invalid_request": {"message": "limit: must be a whole number from 1 to 200"},
    "invalid_domain": {"message": "domain: must have a dot"},
    "invalid_input": {"message": "actions: each must be an action id"},
    "schema_violation": {"reason": "/text: is missing"},
    "sealed": {"segment": "segment-000000000000-000000081920.sqlite3"},
    "bad_request": {"reason": "malformed Host"},
    "policy_denied": {"deny_reason": "dev:anonymous may not call forbidden_export"},
}
"""By code: what an example's body says beside it."""
