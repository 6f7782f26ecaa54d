"""Tools that look and call nothing: the calls of this key, and a receipt. For an agent whose answer was lost.

Guarantees that a receipt is shown only if its signature holds and it is the one that was asked for. The gateway judges
the signature, unless the host named the receipt keys: then this process verifies it.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from mcp_types import CallToolResult, Tool, ToolAnnotations

from gateway_client.agents import AsyncAgentClient
from gateway_client.evidence.receipts import SignatureStatus, verify_receipt
from gateway_client.mcp_server import answers
from gateway_client.tool_names import CALLS_TOOL, RECEIPT_TOOL

MAX_CALLS, DEFAULT_CALLS = 100, 20
MAX_ID = 128
ANSWERED = {"decision": {"enum": ["answered", "denied", "error"]}, "next": {"type": "string"}}
NOT_LISTED = "This session began at {}: calls before are not listed, though they may have happened."
IS_UNKNOWN = "A call in state unknown may have happened. Do not repeat it; an operator can find out."


def lookup_tools() -> list[Tool]:
    """The tools of this file."""
    receipt_id = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "description": "From an answer or a list."}
    limit = {"type": "integer", "minimum": 1, "maximum": MAX_CALLS, "description": f"{DEFAULT_CALLS} if left out."}
    after = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "description":
             "next_after of the page before, or a trace_id: only calls before it."}  # fmt: skip
    return [
        _tool(
            CALLS_TOOL, "Your recent calls",
            "Your own calls of actions, newest first, and what became of each: running, executed, failed, held, "
            "denied, expired, refused or unknown. Ask this after a lost connection; do not repeat the call.",
            {"limit": limit, "after": after}, [],
            {"calls": {"type": "array", "items": {"type": "object"}}, "next_after": {"type": "string"},
             "listed_since": {"type": "string"}},
        ),
        _tool(
            RECEIPT_TOOL, "Receipt of a call",
            "The signed receipt of a call: what ran, how it ended and how its effect was verified. It is shown only if "
            "its signature holds.",
            {"receipt_id": receipt_id}, ["receipt_id"],
            {"receipt": {"type": "object"}, "receipt_id": {"type": "string"}, "output_omitted": {"type": "string"},
             "signature_status": {"type": "string"}, "verified_by": {"enum": ["gateway", "this server"]},
             "is_fully_successful": {"type": "boolean"}},
        ),
    ]  # fmt: skip


class Lookups:
    """Answers both tools. `receipt_keys`: a JWKS that the host keeps; None leaves the verdict to the gateway."""

    def __init__(self, client: AsyncAgentClient, receipt_keys: Mapping[str, Any] | None) -> None:
        self._client = client
        self._receipt_keys = receipt_keys

    async def calls(self, arguments: dict[str, Any]) -> CallToolResult:
        """A page of the calls of this key. Raises GatewayError."""
        limit, after = arguments.get("limit", DEFAULT_CALLS), arguments.get("after")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_CALLS:
            return _invalid("limit is no integer from 1 to 100", "Give limit as an integer from 1 to 100.")
        if after is not None and not _is_id(after):
            return _invalid("after is no id", "Give next_after of the page before, or leave it out.")
        page = await self._client.calls(limit, after)
        made_at = self._client.key_made_at
        since = None if made_at is None else answers.iso(made_at)
        following = [IS_UNKNOWN] if any(one.state == "unknown" for one in page.calls) else []
        if since is not None and page.next is None:
            following.append(NOT_LISTED.format(since))
        return answers.answered(
            {
                "calls": [dict(one.raw) for one in page.calls], "next_after": page.next, "listed_since": since,
                "next": " ".join(following) or None,
            }
        )  # fmt: skip

    async def receipt(self, arguments: dict[str, Any]) -> CallToolResult:
        """A receipt whose signature holds. Raises GatewayError."""
        receipt_id = arguments.get("receipt_id")
        if not _is_id(receipt_id):
            return _invalid("receipt_id is no id", "Give receipt_id as an answer or gateway_recent_calls has it.")
        receipt = await self._client.receipt(receipt_id)
        keys = self._receipt_keys
        status = receipt.signature_status if keys is None else verify_receipt(receipt, keys)
        if receipt.receipt_id != receipt_id or status != SignatureStatus.VERIFIED:
            reason = "another receipt came" if receipt.receipt_id != receipt_id else f"its signature is {status}"
            return answers.refused("receipt_not_verified", reason, "Do not rely on it; tell an operator.")
        size = len(json.dumps(receipt.raw, ensure_ascii=False).encode(errors="replace"))
        is_large = size > answers.MAX_OUTPUT
        return answers.answered(
            {
                "receipt_id": receipt_id, "signature_status": str(status),
                "verified_by": "gateway" if keys is None else "this server",
                "is_fully_successful": receipt.is_fully_successful, "receipt": None if is_large else dict(receipt.raw),
                "output_omitted": f"its {size} bytes are more than {answers.MAX_OUTPUT}" if is_large else None,
            }
        )  # fmt: skip


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value not in {".", ".."}


def _invalid(reason: str, following: str) -> CallToolResult:
    return answers.refused("invalid_arguments", reason, following)


def _tool(
    name: str, title: str, description: str, takes: dict[str, Any], required: list[str], members: dict[str, Any]
) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": takes, "required": required, "additionalProperties": False},
        output_schema={"type": "object", "properties": {**ANSWERED, **members}, "required": ["decision"]},
        annotations=ToolAnnotations(
            title=title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
