"""The body of a notification: identifiers and summaries of one event, or a checkpoint, as compact JSON.

Guarantees a bounded size. SECURITY: never a request, an output, a token, or an event's `reason`, which may hold causes
that are ours alone: only fields that are named here leave.
"""

from base64 import b64encode
from typing import Any, Final

import msgspec

from ipc.configuration.quorum import MOST_GROUPS, MOST_NAME, Quorum
from ipc.evidence.events import AuditEvent
from notary.tree.checkpoint import Checkpoint

MAX_BODY_BYTES: Final = 16 * 1024
SUMMARY_TEMPLATE: Final = "summary_template"
"""In a stored body alone: notary/ledger/sent_summaries.py puts the summary in its place when the body is sent."""
_FIELDS: Final = (
    "event_id", "trace_id", "action_id", "action_version", "principal", "owner", "session_id", "decision", "risk_level",
    "request_hash", "policy_version", "policy_rule", "deny_reason", "error_code", "failure", "may_have_run",
    "approval_id", "approved_by",
    "receipt_id", "receipt_hash", "grant_id", "verification_outcome", "dev_mode", SUMMARY_TEMPLATE,
)  # fmt: skip
_CUTS: Final = (500, 100, 20)
"""Lengths that texts are cut to, in turn, until the body fits; with the last it always fits."""

_encode = msgspec.json.Encoder(order="sorted").encode


def body_of(event: AuditEvent, kind: str, gateway_version: str) -> str:
    """The exact text that is signed and sent (docs/webhooks.md). Fields that do not apply are absent from `data`."""
    data = {name: value for name in _FIELDS if (value := getattr(event, name)) is not None}
    if kind == "revocation" and event.change is not None:
        data["change"] = {name: value for name, value in event.change.items() if isinstance(value, int)}
    if (approvals := _approvals(event)) is not None:
        data["approvals"] = approvals
    body = {"data": data, "gateway_version": gateway_version, "id": event.event_id, "timestamp": event.timestamp}
    encoded = b""
    for most in _CUTS:
        encoded = _encode({**body, "data": {name: _cut(value, most) for name, value in data.items()}, "type": kind})
        if len(encoded) <= MAX_BODY_BYTES:
            break
    return encoded.decode()


def checkpoint_body(made: Checkpoint, note: str, named: str, kind: str, gateway_version: str) -> str:
    """The same for a checkpoint, which has no event: the signed note, and what it says. Bounded as a note is."""
    data = {
        "checkpoint": note, "origin": made.origin, "size": made.size, "root": b64encode(made.root).decode(),
        "time": made.time, "unresolved_intents": made.unresolved,
    }  # fmt: skip
    body = {"data": data, "gateway_version": gateway_version, "id": named, "timestamp": made.time, "type": kind}
    return _encode(body).decode()


def _approvals(event: AuditEvent) -> dict[str, Any] | None:
    """How many of several approvals are given; None for a call that needs one."""
    try:
        quorum = msgspec.convert(event.quorum, Quorum | None)
    except msgspec.ValidationError:
        return None
    if quorum is None or len(quorum.groups) > MOST_GROUPS:
        return None
    groups = {_cut(name, MOST_NAME): number for name, number in quorum.groups.items()}
    return {"given": len(event.approvals or ()), "needed": quorum.count, "groups": groups}


def _cut(value: Any, most: int) -> Any:
    return value[:most] + "…" if isinstance(value, str) and len(value) > most else value
