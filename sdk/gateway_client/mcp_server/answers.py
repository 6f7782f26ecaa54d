"""Answers to tool calls: outcomes, holds and errors as structured content, and the same as JSON text. Pure.

SECURITY: outputs and reasons are texts of others. In the text nothing stands that can't be seen, and a result is
bounded: a provider decides neither what a host's screen shows nor how much of a model's context is filled. Never holds
a token.
"""

import json
from datetime import UTC, datetime
from typing import Any

from mcp_types import CallToolResult, TextContent

from gateway_client.errors import ApprovalPending, Denied, GatewayError
from gateway_client.hints import NOT_CONFIRMED
from gateway_client.results import Executed, Held
from gateway_client.tool_names import STATUS_TOOL, name_of
from gateway_client.visible import visible

MAX_OUTPUT = 262_144
"""Bytes of an output as JSON; a larger one is left out, and its receipt named."""
HOLD_SECONDS = 300.0
"""docs/contract.md of the gateway, "Limits": approval TTL."""
BY_RULE = {
    "acl": "This principal may not call this action; other tools may be allowed. An operator can grant it.",
    "denied_action": "This action is denied to everybody; use another tool.",
    "scope": "The session lacks a scope that the action requires; start gatectl mcp with --scope.",
    "sinks": "The action has a side effect that this principal may not have; one without it may be allowed.",
    "trust": "The action's module is not trusted; an operator has to look. Other tools are not affected.",
}
"""Rules of the gateway's default policy to what would be allowed."""


def executed(done: Executed) -> CallToolResult:
    """A call that ran."""
    fields = {
        "decision": "executed", "action_id": done.action_id, "output": done.output, "receipt_id": done.receipt_id,
        "trace_id": done.trace_id, "verification_outcome": done.verification_outcome,
        "is_fully_successful": done.is_fully_successful, "approval_id": done.approval_id,
    }  # fmt: skip
    size = len(json.dumps(done.output, ensure_ascii=False).encode(errors="replace"))
    if size > MAX_OUTPUT:
        del fields["output"]
        fields["output_omitted"] = f"{size} bytes of output are more than {MAX_OUTPUT}: ask for less"
    if not done.is_fully_successful:
        fields["next"] = NOT_CONFIRMED
    return _result(fields)


def pending(held: Held, action_id: str, held_at: float) -> CallToolResult:
    """A call that waits for an operator: no error, and no success yet. `held_at` in Unix seconds."""
    return _result(
        {
            "decision": "pending_approval", "state": "pending", "action_id": action_id, "summary": held.summary,
            "approval_id": held.approval_id, "trace_id": held.trace_id, "expires_at": iso(held_at + HOLD_SECONDS),
            "next": f"An operator has to decide. Do not repeat the call: ask {STATUS_TOOL} with this approval_id.",
        }
    )  # fmt: skip


def held_elsewhere(held: Held, action_id: str) -> CallToolResult:
    """A call that was held in an earlier session, which alone may ask for its outcome; a repeat under its key may."""
    following = "An operator has to decide. Repeat this call with the same idempotency key later, and with no other."
    return _result(
        {
            "decision": "pending_approval", "state": "pending", "action_id": action_id, "summary": held.summary,
            "approval_id": held.approval_id, "trace_id": held.trace_id, "next": following,
        }
    )  # fmt: skip


def answered(fields: dict[str, Any]) -> CallToolResult:
    """The answer of a tool that only looks."""
    return _result({"decision": "answered", **fields})


def failed(error: GatewayError) -> CallToolResult:
    """A refusal or failure, with what a model needs to do better."""
    fields = {
        "decision": "denied" if isinstance(error, Denied) else "error", "error": error.code,
        "status": error.status, "reason": error.reason, "rule": error.rule,
        "next": BY_RULE.get(error.rule or "", error.hint), "is_retryable": error.is_retryable,
        "retry_after_seconds": error.retry_after, "may_have_run": error.may_have_run,
        "failure": error.failure, "effect": error.effect, "violations": list(error.violations) or None,
        "did_you_mean": [name_of(one) for one in error.suggestions] or None, "trace_id": error.trace_id,
        "receipt_id": error.receipt_id, "approval_id": error.approval_id,
    }  # fmt: skip
    return _result(fields, is_error=True)


def unknown(error: ApprovalPending) -> CallToolResult:
    """A hold whose outcome can't be asked for any more: an error, though it may have run."""
    following = "Ask the user to find out from an operator what became of it before it is called again."
    fields = {
        "decision": "error", "error": "approval_unknown", "reason": error.reason, "approval_id": error.approval_id,
        "trace_id": error.trace_id, "next": following, "is_retryable": False, "may_have_run": True,
    }  # fmt: skip
    return _result(fields, is_error=True)


def refused(code: str, reason: str, following: str, *, is_retryable: bool = False) -> CallToolResult:
    """A refusal of this server's own; nothing was sent to the gateway."""
    fields = {
        "decision": "error", "error": code, "reason": reason, "next": following, "is_retryable": is_retryable,
        "may_have_run": False,
    }  # fmt: skip
    return _result(fields, is_error=True)


def iso(seconds: float) -> str:
    """A moment in Unix seconds as ISO 8601, UTC, milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _result(fields: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    known = {name: value for name, value in fields.items() if value is not None}
    text = json.dumps(known, ensure_ascii=False)
    if not _is_unicode(text):  # half of a surrogate pair: no message of the protocol can contain it
        text = text.encode(errors="replace").decode()
        known = json.loads(text)
    if visible(text) != text:
        text = json.dumps(known)
    return CallToolResult(content=[TextContent(text=text)], structured_content=known, is_error=is_error)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
