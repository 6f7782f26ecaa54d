"""A held call as a scripted gateway shows it, and the answers to decisions about it."""

from typing import Any

DETAIL: dict[str, Any] = {
    "approval_id": "apr_1", "action_id": "http_fetch", "action_version": "1.0.0", "state": "pending",
    "principal": "billing-agent", "session_id": "ses_1", "owner": "team-billing", "risk_level": "high",
    "request_hash": "sha256:11", "created_at": "2026-11-21T11:12:13.123Z", "expires_at": "2999-01-01T00:00:00.000Z",
    "trace_id": "trc_1", "request": {"path": "/a\u202e\x1b[2J", "note": "x\ny"},
    "approved_targets": ["GET https://bank.example/a"], "approved_secrets": ["bank_token"],
    "approved_request": {"method": "GET", "url": "https://bank.example/a", "headers": [], "body": None},
    "unresolved_domains": ["bank.example"], "unresolved_paths": [], "sinks": ["http_read"], "plan_hash": "sha256:22",
    "provider_module_digest": "sha256:33", "policy_version": "p-1", "policy_rule": "hold_unresolved_domain",
    "budget_snapshot": {"calls_remaining": 7},
}  # fmt: skip
EXECUTED: dict[str, Any] = {
    "trace_id": "trc_1", "action_id": "http_fetch", "grant_id": "grant_1", "receipt_id": "rcpt_1", "output": {},
    "verification_outcome": "verified", "approval": {"approval_id": "apr_1", "approval_hash": "sha256:22"},
}  # fmt: skip
SHOW, APPROVE, DENY = "GET /v1/approvals/apr_1", "POST /v1/approvals/apr_1/approve", "POST /v1/approvals/apr_1/deny"
GONE = (404, {"error": "approval_not_found"})
