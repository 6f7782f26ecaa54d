"""One table: error code -> HTTP status. Handlers and services raise codes; each status is written once, here.

Codes are those of docs/contract.md, "Errors", and of `docs/decisions/` where it is silent. A 5xx answer
carries the code alone; the cause goes to the log with the trace id.
"""

import json
from types import TracebackType
from typing import Any

from contract.failures import CallFailure, FailureName

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
    "foreign_host": 403,
    "scope_not_permitted": 403,
    "approval_session_mismatch": 403,
    "approval_signature_required": 403,
    "own_request": 403,
    "role_required": 403,
    "invalid_approval_signature": 403,
    # the request itself
    "invalid_request": 400,
    "bad_request": 400,
    "invalid_domain": 400,
    "invalid_path": 400,
    "unknown_action": 400,
    "invalid_input": 400,
    "invalid_idempotency_key": 400,
    "not_found": 404,
    "action_not_found": 404,
    "schema_not_found": 404,
    "approval_not_found": 404,
    "receipt_not_found": 404,
    "evidence_not_found": 404,
    "sealed": 404,
    "intent_not_found": 404,
    "session_not_found": 404,
    "domain_not_found": 404,
    "path_not_found": 404,
    "principal_not_found": 404,
    "webhook_not_found": 404,
    "allowlist_entry_not_found": 404,
    "threshold_not_found": 404,
    "cap_not_found": 404,
    "standing_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "already_approved_by_you": 409,
    "plan_integrity": 409,
    "call_in_progress": 409,
    "already_executed": 409,
    "approval_expired": 409,
    "outcome_unknown": 409,
    "intent_under_way": 409,
    "intent_not_verifiable": 409,
    "domain_already_exists": 409,
    "path_already_exists": 409,
    "too_many_rules": 409,
    "too_many_standing_approvals": 409,
    "too_many_revoked_sessions": 409,
    "policy_changed_on_disk": 409,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "schema_violation": 422,
    "idempotency_key_reused": 422,
    "too_many_pending_approvals": 429,
    "rate_limit_exceeded": 429,
    "too_many_idempotency_keys": 429,
    "headers_too_large": 431,
    # ours
    "evidence_persistence_failed": 500,
    "reload_failed": 500,
    "policy_refused": 500,
    "policy_not_writable": 500,
    "allowlist_sync_failed": 500,
    "internal_error": 500,
    "action_execution_failed": 502,
    "draining": 503,
    "overloaded": 503,
    "policy_engine_unavailable": 503,
    "policy_engine_timeout": 503,
    "replay_cache_unavailable": 503,
    "budget_store_unavailable": 503,
    "approval_store_unavailable": 503,
    "epoch_store_unavailable": 503,
    "ledger_unavailable": 503,
    "evidence_store_unavailable": 503,
    "ledger_full": 503,
    "learned_rules_unavailable": 503,
    "secrets_unavailable": 503,
    "clock_error": 503,
    "identity_provider_unavailable": 503,
}

RETRY_AFTER: dict[str, int] = {
    "overloaded": 1, "rate_limit_exceeded": 1, "too_many_pending_approvals": 1, "draining": 5,
    "too_many_idempotency_keys": 1,
    "ledger_full": 5,
    "policy_engine_timeout": 1, "call_in_progress": 1,
}  # fmt: skip
"""Seconds in `Retry-After` unless the raising code knows better; other 503 answers carry none: it is unknown."""

REPLAYED = ("Idempotent-Replayed", "true")
"""The header of every answer that repeats the outcome of an earlier call."""


class GateError(Exception):
    """An outcome with a code of the table.

    `extra` are fields beside `error` in a 4xx body (`deny_reason`, `reason`, `message` and the like); 5xx bodies never
    carry them.
    `cause` is for the log and the audit event's `reason`, never for the answer of a 5xx. `retry_after` are whole
    seconds after which it is worth another try, where they are known.
    """

    def __init__(self, code: str, *, cause: str | None = None, retry_after: int | None = None, **extra: Any) -> None:
        super().__init__(code)
        self.code = code
        self.status = STATUS[code]
        self.cause = cause
        self.retry_after = RETRY_AFTER.get(code) if retry_after is None else max(1, retry_after)
        self.extra = extra
        self.receipt_id: str | None = None
        """The receipt of a call that ran and failed, in the header `X-Receipt-Id`."""
        self.failure: CallFailure | None = None
        """The failure of a call, in the headers `X-Failure` and `X-May-Have-Run`."""
        self.provider_error: str | None = None
        """The provider's own message, cleaned and cut, if its manifest exposes it: `X-Provider-Error`."""
        self.intent_id: str | None = None
        """The intent of a call whose outcome is not known, in the header `X-Intent-Id`."""
        self.is_replayed = False
        """The outcome of an earlier call under the same key: `Idempotent-Replayed`."""
        self.is_told = False
        """True if its code and cause are logged already."""

    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        return {"error": self.code} if self.status >= 500 else {"error": self.code, **self.extra}

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers that belong to the code: WWW-Authenticate on 401, Retry-After where it helps."""
        headers: list[tuple[str, str]] = []
        if self.status == 401:
            headers.append(("WWW-Authenticate", "DPoP"))
        if self.retry_after is not None:
            headers.append(("Retry-After", str(self.retry_after)))
        if self.receipt_id is not None:
            headers.append(("X-Receipt-Id", self.receipt_id))
        if self.failure is not None:
            headers += self.failure.headers()
        if self.intent_id is not None:
            headers.append(("X-Intent-Id", self.intent_id))
        if self.is_replayed:
            headers.append(REPLAYED)
        if self.provider_error is not None:
            headers.append(("X-Provider-Error", json.dumps(self.provider_error)))  # ASCII, whatever it holds
        return tuple(headers)


class CallFailed(GateError):
    """502 of a call that fails before anything of it is sent."""

    def __init__(self, name: FailureName, cause: str) -> None:
        super().__init__("action_execution_failed", cause=cause)
        self.failure = CallFailure(name, "no")


class errors_as:  # noqa: N801 (a context manager reads as a verb, like contextlib.suppress)
    """Translates errors where they leave a room: `with errors_as("overloaded", NoWorker):` raises GateError with this
    code in their place, and their text as its cause. Other errors pass."""

    def __init__(self, code: str, *errors: type[Exception]) -> None:
        self._code = code
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, self._errors):
            raise GateError(self._code, cause=str(error)) from None
