"""Tools from manifests: name, description, schemas, and risk as annotations; and a digest of each. Pure.

Annotations follow from what the manifest declares, and are on the careful side where it leaves something open: a tool
is read-only only if every declared side effect is a reading one, and destructive unless it is read-only or of low risk.
"""

import hashlib
import json
from typing import Any

from mcp_types import Tool, ToolAnnotations

from gateway_client.errors import clean
from gateway_client.results import Manifest
from gateway_client.tool_names import STATUS_TOOL, name_of
from gateway_client.tool_schemas import object_schema

HELD_RISKS = frozenset({"high", "critical"})
"""Risk levels that the default policy holds for a person (the gateway's docs/policy.md)."""
META = "action-gateway/action"
"""Key of `_meta` with the action that a tool is."""
MAX_WAIT = 300
"""Seconds: as long as a hold lives."""

_TEXT = {"type": "string"}
_ENVELOPE: dict[str, Any] = {
    "decision": {"enum": ["executed", "pending_approval", "denied", "error"]}, "action_id": _TEXT, "trace_id": _TEXT,
    "receipt_id": _TEXT, "verification_outcome": _TEXT, "is_fully_successful": {"type": "boolean"},
    "output_omitted": _TEXT, "approval_id": _TEXT, "summary": _TEXT, "state": _TEXT, "expires_at": _TEXT, "next": _TEXT,
}  # fmt: skip
"""Members of structured content, whichever tool it comes from: docs/mcp.md of the gateway. There are more where
`isError` is set, and `decision` even then: some clients hold errors against the schema too."""


def tool_of(manifest: Manifest) -> Tool | None:
    """The tool for an action; None for one whose requests are no objects, which MCP can't send."""
    asked = object_schema(manifest.request_schema)
    if asked is None:
        return None
    return Tool(
        name=name_of(manifest.action_id),
        description=_description(manifest),
        input_schema=asked,
        output_schema=_output(manifest),
        annotations=annotations_of(manifest),
        _meta={META: {"id": manifest.action_id, "version": manifest.version, "risk_level": manifest.risk_level}},
    )


def digest_of(tool: Tool | None) -> str:
    """SHA-256 of a tool's whole entry in the list; empty for an action that can't be a tool."""
    if tool is None:
        return ""
    return hashlib.sha256(json.dumps(tool.model_dump(by_alias=True, exclude_none=True)).encode()).hexdigest()


def annotations_of(manifest: Manifest) -> ToolAnnotations:
    """Hints for the host's user interface, from declared side effects, risk level and egress."""
    effects = manifest.declared_side_effects
    is_read_only = all(effect.rpartition("_")[2] == "read" for effect in effects)
    reaches_out = (manifest.egress or {}).get("profile", "none") != "none"
    return ToolAnnotations(
        title=clean(manifest.action_id),
        read_only_hint=is_read_only,
        destructive_hint=not is_read_only and manifest.risk_level != "low",
        idempotent_hint=is_read_only,
        open_world_hint=reaches_out or any(effect.startswith("http") for effect in effects),
    )


def status_tool() -> Tool:
    """The tool that asks for the outcome of a held call."""
    return Tool(
        name=STATUS_TOOL,
        description=(
            "What became of a call that waits for an operator's approval. Gives the call's outcome once it is decided, "
            "else that it is still pending. Ask this instead of repeating the call."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "approval_id": {"type": "string", "description": "From the answer of the call that was held."},
                "wait_seconds": {"type": "number", "minimum": 0, "maximum": MAX_WAIT, "description":
                                 "How long to wait for the decision; 0 to ask once."},
            },
            "required": ["approval_id"],
            "additionalProperties": False,
        },
        output_schema=_schema({}),
        annotations=ToolAnnotations(
            title="Outcome of a held call", read_only_hint=True, destructive_hint=False, idempotent_hint=True,
            open_world_hint=False,
        ),
    )  # fmt: skip


def _description(manifest: Manifest) -> str:
    effects = ", ".join(manifest.declared_side_effects) or "none"
    text = f"{manifest.description or manifest.action_id} Risk: {manifest.risk_level}. Side effects: {effects}."
    if manifest.risk_level in HELD_RISKS:
        text += f" An operator may have to approve it first: then ask {STATUS_TOOL} for the outcome."
    return clean(text)


def _output(manifest: Manifest) -> dict[str, Any]:
    schema = manifest.response_schema
    if not isinstance(schema, dict):
        return _schema({})
    # References inside mean the schema that they stand in: below another one, it needs an address of its own.
    return _schema({"$id": f"urn:action-gateway:{manifest.action_id}:response", **schema})


def _schema(output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {**_ENVELOPE, "output": output}, "required": ["decision"]}
