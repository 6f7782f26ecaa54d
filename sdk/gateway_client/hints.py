"""The next step after an error, as one sentence for the caller: a program's author, or a model that calls tools.

Codes are those of docs/errors.md of the gateway and of gateway_client/errors.py. The sentences name no command and
quote no answer; gatectl has its own, for operators.
"""

HINTS = {
    "invalid_request": "Change what the reason names, then call again.",
    "bad_request": "The request is not HTTP as the gateway speaks it; calling again does not help.",
    "body_too_large": "Send a smaller request.",
    "schema_violation": "Change what the reason names so that the request fits the action's schema, then call again.",
    "action_not_found": "Call one of the listed actions by its exact name.",
    "schema_not_found": "The action declares no request schema: any JSON object will do.",
    "approval_not_found": "The hold is unknown, decided or expired; call the action again if it is still wanted.",
    "sealed": "What is so old was moved to the file that the reason names; an operator has it.",
    "receipt_not_found": "Check the id of the receipt.",
    "policy_denied": "Policy does not allow this; do something else, or ask an operator to change the policy.",
    "action_not_registered": "An operator has to trust the action's module first; calling again does not help.",
    "action_digest_mismatch": "An operator has to look at the action's module or tool; calling again does not help.",
    "budget_exhausted": "No calls are left; stop, or begin another session if you may.",
    "budget_session_not_found": "The session's counter is gone; begin another session.",
    "identity_forbidden": "An operator has to map this user or token to a principal; calling again does not help.",
    "scope_not_permitted": "Ask for other scopes, or let an operator allow these.",
    "approval_session_mismatch": "Ask with the session that made the call.",
    "approval_denied": "An operator said no: read the reason, and do not ask for the same again unchanged.",
    "approval_pending": "An operator has not decided yet; ask for the outcome again later, do not repeat the call.",
    "approval_expired": "Nobody decided in time and nothing ran; call again if it is still wanted.",
    "approval_failed": "It was approved and could not be carried out; find out what happened before you call again.",
    "call_in_progress": "The same call still runs; wait, then call again with the same idempotency key.",
    "already_executed": "It has run already: look at its receipt, and do not call it again under another key.",
    "outcome_unknown": "It may have run and does not run again under its key; an operator has to find out.",
    "invalid_idempotency_key": "Give 1 to 255 printable ASCII characters as the key of a call.",
    "idempotency_key_reused": "The key is that of another request: use a new key for each call.",
    "lease_expired": "The session is over; begin another one.",
    "invalid_lease": "The lease does not hold any more; begin another session.",
    "invalid_dpop": "The proof does not hold: check the gateway's public_base_url, the clock and the key.",
    "replay_detected": "Send the call again; it gets a proof of its own.",
    "rate_limit_exceeded": "Wait, then call again, more slowly.",
    "too_many_pending_approvals": "Too many calls wait for a person; wait until some are decided.",
    "action_execution_failed": "The action began and failed; find out what it did before you call again.",
    "evidence_persistence_failed": "It may have run; find out what it did before you call again.",
    "internal_error": "A fault of the gateway; report it with the trace id.",
    "draining": "The gateway is shutting down; wait, then call again.",
    "overloaded": "The gateway is busy; wait, then call again.",
    "clock_error": "The clock of the gateway's host has to be set; wait, then call again.",
    "identity_provider_unavailable": "Use the client socket; if you showed a token, wait, then call again.",
    "approval_store_unavailable": "A hold may be waiting all the same; an operator has to look before you call again.",
    "unreachable": "No gateway answers at this address; nothing was sent.",
    "connection_lost": "Nobody can say what came of it; find out before you call again.",
    "timed_out": "Nobody can say what came of it; find out before you call again.",
    "client_closed": "The client was closed; make another one.",
    "protocol_violation": "What answers there is no gateway, or a broken one; check the address.",
}
OF_UNAVAILABLE = "Something that the gateway needs is missing; wait, then call again."
OF_FAULT = "A fault of the gateway; find out what happened before you call again."
OF_NOT_RUN = "Nothing was sent and no file was changed: it may be repeated once the cause is gone."
NOT_CONFIRMED = "It ran, but its effect is not confirmed; do not rely on it, and do not simply repeat it."
OTHERWISE = "The gateway's docs/errors.md explains the code; calling again unchanged does not help."


def hint_for(code: str, status: int | None) -> str:
    """The sentence of a code; of one that is not known here, that of its status."""
    if code in HINTS:
        return HINTS[code]
    if status == 503:
        return OF_UNAVAILABLE
    return OF_FAULT if status is not None and status >= 500 else OTHERWISE
