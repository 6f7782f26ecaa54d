"""The table of events that lead to notifications, with their kinds.

Kinds are those of ipc.settings.WEBHOOK_KINDS. Guarantees that a caller who has not authenticated can't make the gateway
send a notification, and that a hold leads to one only.
"""

from typing import Final

from ipc.evidence import events
from ipc.evidence.events import AuditEvent

NOT_AUTHENTICATED: Final = (
    "lease_expired", "invalid_lease", "invalid_dpop", "replay_detected", "missing_auth_header",
    "invalid_operator_token",
)  # fmt: skip
"""Codes of 401, as frontend/errors.py has them."""
_ANY: Final = ""
"""Stands for all error codes that have no row of their own."""

_TABLE: dict[tuple[str, str | None, str], tuple[str, ...]] = {
    # type of the event, decision, error code -> kinds, the most special first
    (events.ACTION_CALL, "pending_approval", _ANY): ("approval.pending",),
    (events.APPROVAL_GRANTED, "allow", _ANY): ("approval.granted",),
    (events.APPROVAL_DENIED, "deny", _ANY): ("approval.denied",),
    (events.APPROVAL_EXPIRED, "deny", _ANY): ("approval.expired",),
    (events.ACTION_CALL, "allow", _ANY): ("action.executed",),
    (events.ACTION_CALL, "error", _ANY): ("action.failed",),
    (events.ACTION_CALL, "deny", _ANY): ("action.denied",),
    (events.ACTION_CALL, "deny", "budget_exhausted"): ("budget.exhausted", "action.denied"),
    # SECURITY: anybody who reaches the socket can be refused like that.
    **{(events.ACTION_CALL, "deny", code): () for code in NOT_AUTHENTICATED},
    # A recorded request, too, for as long as the cache can't tell that its proof is an old one. Refusals that are
    # counted (`attempts`) are not told for the same reason.
    (events.ACTION_CALL, "error", "replay_cache_unavailable"): (),
    (events.ADMIN_REVOKE_ALL, "allow", _ANY): ("revocation",),
    (events.ADMIN_DRAIN, "allow", _ANY): ("gateway.draining",),
}


def kinds_of(event: AuditEvent) -> tuple[str, ...]:
    """As what an event is notified of, the most special kind first; an endpoint gets the first that it asked for."""
    if event.is_repeated or event.attempts is not None:
        return ()
    key = (event.event_type, event.decision)
    kinds = _TABLE.get((*key, event.error_code)) if event.error_code else None
    return _TABLE.get((*key, _ANY), ()) if kinds is None else kinds
