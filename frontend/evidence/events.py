"""Audit events: the struct, the names of their types, and the bytes that are stored and hashed.

An event is encoded once, by whoever makes it, with a gap where `prev_hash` goes; the ledger fills the gap inside its
transaction. What is stored is what was hashed. Never decides what is evidence.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from frontend.clock import parse_iso
from ipc.canonical import NotCanonical, durable_bytes, is_plain, sha256_hex

ACTION_CALL: Final = "ActionCall"
LEASE_ISSUED: Final = "LeaseIssued"
APPROVAL_GRANTED: Final = "ApprovalGranted"
APPROVAL_DENIED: Final = "ApprovalDenied"
APPROVAL_EXPIRED: Final = "ApprovalExpired"
ADMIN_DRAIN: Final = "AdminDrain"
ADMIN_RELOAD: Final = "AdminReload"
ADMIN_REVOKE_ALL: Final = "AdminRevokeAll"
RECEIPT_KEYS_READ: Final = "ReceiptKeysRead"
DOMAIN_ADDED: Final = "DomainAdded"
DOMAIN_REMOVED: Final = "DomainRemoved"
DOMAIN_CLEARED: Final = "DomainCleared"
PATH_ADDED: Final = "PathAdded"
PATH_REMOVED: Final = "PathRemoved"
PATH_CLEARED: Final = "PathCleared"
POLICY_GRANTED: Final = "PolicyGranted"
POLICY_REVOKED: Final = "PolicyRevoked"
POLICY_ALLOWLIST_ADDED: Final = "PolicyAllowlistAdded"
POLICY_ALLOWLIST_REMOVED: Final = "PolicyAllowlistRemoved"
BUDGET_ROLLBACK_FAILED: Final = "BudgetRollbackFailed"
KEYS_ROTATED: Final = "KeysRotated"
GATEWAY_STARTED: Final = "GatewayStarted"
GATEWAY_STOPPED: Final = "GatewayStopped"


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of evidence (docs/decisions.md, "Audit, receipts, intents"); absent where a field does not apply."""

    event_id: str
    event_type: str
    timestamp: str
    """UTC, milliseconds, `Z`."""
    trace_id: str | None = None
    principal: str | None = None
    owner: str | None = None
    session_id: str | None = None
    lease_jti: str | None = None
    identity_method: str | None = None
    action_id: str | None = None
    action_version: str | None = None
    provider_module_digest: str | None = None
    trust_verdict: str | None = None
    risk_level: str | None = None
    request_hash: str | None = None
    policy_version: str | None = None
    policy_rule: str | None = None
    decision: str | None = None
    """allow, deny, error or pending_approval."""
    deny_reason: str | None = None
    reason: str | None = None
    error_code: str | None = None
    allowed_sinks: tuple[str, ...] | None = None
    budgets_before: dict[str, Any] | None = None
    budgets_after: dict[str, Any] | None = None
    runtime: dict[str, Any] | None = None
    response_hash: str | None = None
    grant_id: str | None = None
    receipt_id: str | None = None
    intent_id: str | None = None
    verification_outcome: str | None = None
    approval_id: str | None = None
    is_repeated: bool | None = None
    """True where a call was answered with the hold of the same call, which waits already: no new hold."""
    approved_by: str | None = None
    operator_sender_binding: str | None = None
    operator_proof_jti: str | None = None
    change: dict[str, Any] | None = None
    """What an operator changed: of policy `principal` and `actions`, or `agent_id` beside `action_id`; of the epoch
    `previous_epoch` and `current_epoch`."""
    key_purpose: str | None = None
    """lease, grant or receipt: which signing key was followed by another."""
    key_id: str | None = None
    previous_key_id: str | None = None
    signing_keys: dict[str, str] | None = None
    """Purpose -> id of the key that signs, when a gateway starts."""
    dev_mode: bool | None = None
    sandbox_degraded: bool | None = None
    prev_hash: str | UnsetType | None = UNSET
    """`sha256:<hex>` of the event before it, null in the first one; set by the ledger and by nobody else."""


_GAP = b'"prev_hash":null'
_encode = msgspec.json.Encoder(order="sorted").encode


class OpenEvent(msgspec.Struct, frozen=True):
    """The canonical bytes of an event around the value of its `prev_hash`."""

    before: bytes
    after: bytes

    def closed(self, prev_hash: str | None) -> bytes:
        """The bytes to store, linked to the event before."""
        return self.before + (b"null" if prev_hash is None else b'"' + prev_hash.encode() + b'"') + self.after


def open_event(event: AuditEvent) -> OpenEvent:
    """Encode an event up to its link. Raises NotCanonical."""
    free = (event.runtime, event.budgets_before, event.budgets_after, event.change, event.signing_keys)
    linked = msgspec.structs.replace(event, prev_hash=None)
    try:
        encoded = _encode(linked) if all(map(is_plain, free)) else durable_bytes(msgspec.to_builtins(linked))
    except (UnicodeEncodeError, RecursionError) as error:
        raise NotCanonical(str(error)) from None
    # A quotation mark inside a text is escaped, so that no text can hold the gap; a name in a dict could.
    parts = encoded.split(_GAP)
    if len(parts) != 2:
        raise NotCanonical("an event must not hold another prev_hash")
    return OpenEvent(parts[0] + _GAP[:-4], parts[1])


def event_hash(stored: bytes) -> str:
    """What the next event carries as `prev_hash`."""
    return sha256_hex(stored)


@lru_cache(maxsize=64)
def _second(text: str) -> int:
    return round(parse_iso(text + "Z") * 1000)


def milliseconds(timestamp: str) -> int:
    """An event's `timestamp` as milliseconds since the Unix epoch. Raises ValueError for any other form of time."""
    fraction = timestamp[20:23]
    if len(timestamp) != 24 or timestamp[19] + timestamp[23] != ".Z" or not (fraction.isascii() and fraction.isdigit()):
        raise ValueError("not a time of the form 2026-11-21T11:12:13.123Z")
    return _second(timestamp[:19]) + int(fraction)
