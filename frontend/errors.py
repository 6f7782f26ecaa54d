"""One table: error code -> HTTP status. Handlers and services raise; nobody writes a status twice.

Codes are those of the interface specification ("Errors") and of docs/decisions.md where it is silent. A 5xx answer
carries the code alone; the cause goes to the log with the trace id.
"""

from typing import Any

STATUS: dict[str, int] = {
    # authentication
    "lease_expired": 401,
    "invalid_lease": 401,
    "invalid_dpop": 401,
    "replay_detected": 401,
    "missing_auth_header": 401,
    "invalid_operator_token": 401,
    # decisions
    "policy_denied": 403,
    "action_not_registered": 403,
    "action_digest_mismatch": 403,
    "budget_exhausted": 403,
    "budget_session_not_found": 403,
    "identity_forbidden": 403,
    "scope_not_permitted": 403,
    "approval_session_mismatch": 403,
    # the request itself
    "invalid_request": 400,
    "bad_request": 400,
    "not_found": 404,
    "action_not_found": 404,
    "schema_not_found": 404,
    "approval_not_found": 404,
    "receipt_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "plan_integrity": 409,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "schema_violation": 422,
    "too_many_pending_approvals": 429,
    "rate_limit_exceeded": 429,
    "headers_too_large": 431,
    # ours
    "evidence_persistence_failed": 500,
    "internal_error": 500,
    "action_execution_failed": 502,
    "draining": 503,
    "overloaded": 503,
    "policy_engine_unavailable": 503,
    "policy_engine_timeout": 503,
    "replay_cache_unavailable": 503,
    "budget_store_unavailable": 503,
    "approval_store_unavailable": 503,
    "ledger_unavailable": 503,
    "clock_error": 503,
    "identity_provider_unavailable": 503,
}

RETRY_AFTER: dict[str, int] = {"overloaded": 1, "rate_limit_exceeded": 1, "draining": 5, "policy_engine_timeout": 1}
"""Seconds in `Retry-After`; other 503 answers carry none, since nobody knows."""


class GateError(Exception):
    """An outcome with a code of the table.

    `extra` are fields beside `error` in a 4xx body (`deny_reason`, `reason`, `message`); 5xx bodies never carry them.
    `cause` is for the log and the audit event's `reason`, never for the answer of a 5xx.
    """

    def __init__(self, code: str, *, cause: str | None = None, **extra: Any) -> None:
        super().__init__(code)
        self.code = code
        self.status = STATUS[code]
        self.cause = cause
        self.extra = extra

    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        return {"error": self.code} if self.status >= 500 else {"error": self.code, **self.extra}

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers that belong to the code: WWW-Authenticate on 401, Retry-After where it helps."""
        found: list[tuple[str, str]] = []
        if self.status == 401:
            found.append(("WWW-Authenticate", "DPoP"))
        if self.code in RETRY_AFTER:
            found.append(("Retry-After", str(RETRY_AFTER[self.code])))
        return tuple(found)
