"""From a tool to its manifest: the pinned tool, a request schema that the gateway takes, and notes for the review.

Guarantees that nothing that a server says of itself changes risk, import or domain, that its texts hold no hidden
character as it stands, and that each manifest passes the checks of frontend/manifests.
"""

import re
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from frontend.manifests.domains import InvalidDomain, normal_domain
from importing.accepted import check_manifest
from importing.manifest_text import manifest_text
from importing.mcp.tools import ListedTool
from importing.openapi.references import References
from importing.openapi.schemas import SchemaConversion
from importing.refusal import ImportRefused, LeftOut
from importing.steps import WRITING, ImportSteps
from importing.words import snake
from ipc.mcp_tools import tool_digest
from ipc.process.exits import Exit
from ipc.texts.canonical import NotCanonical
from ipc.texts.visible import has_looks, visible

MAX_DESCRIPTION: Final = 2000
MAX_SCHEMA_BYTES: Final = 1024 * 1024
SECONDS: Final = 30
_URL = re.compile(r"https?://[!-z|~]{1,4000}")


class McpTarget(msgspec.Struct, frozen=True):
    """Where the server is, and what the person asked for."""

    url: str
    host: str
    prefix: str
    risk: str
    has_token: bool

    @property
    def secret(self) -> str:
        """The name of the secret that holds the server's token."""
        return snake(self.prefix or self.host) + "_token"


class ToolManifest(msgspec.Struct, frozen=True):
    """A manifest's file before it is written."""

    action_id: str
    tool: str
    digest: str
    text: str
    hints: str
    """Those that the server sets, for the terminal."""
    notes: tuple[str, ...]


def target_of(url: str, prefix: str, risk: str, *, has_token: bool) -> McpTarget:
    """Raises ImportRefused for an address that no action could call."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        has_port = parts.port != 0
    except ValueError:
        host, has_port = "", False
    if _URL.fullmatch(url) is None or not host or not has_port or "@" in url or "#" in url or "{" in url:
        raise ImportRefused(f"--url {url!a}: must be http:// or https:// with a host, in ASCII.", Exit.USAGE)
    try:
        domain = normal_domain(host)
    except InvalidDomain as error:
        raise ImportRefused(
            f"--url {url!a}: {host} {error}. An action's egress names a domain: give the server one, as in "
            "http://mcp.internal:8811/mcp (docs/mcp-servers.md).",
            Exit.USAGE,
        ) from None
    return McpTarget(url, domain, prefix, risk, has_token)


def made_of(tool: ListedTool, action_id: str, target: McpTarget, steps: ImportSteps) -> ToolManifest:
    """The manifest of one tool. Raises LeftOut, ImportRefused."""
    try:
        digest = tool_digest(tool.members)
    except NotCanonical:
        raise LeftOut("its numbers or texts have no canonical form") from None
    schema, notes = _request_schema(tool.members["inputSchema"], steps)
    description, is_escaped = _described(tool.members.get("description"))
    if is_escaped:
        notes.append("the description holds hidden or control characters, written as escapes")
    fields: dict[str, Any] = {
        "action_id": action_id,
        "version": "1.0.0",
        "description": description or f"Tool {tool.name} of {target.host}",
        "provider_module_digest": "builtin:mcp",
        "required_imports": ["http"],
        "risk_level": target.risk,
        "declared_side_effects": ["http_write"],
        "resource_limits": {"fuel": 300_000_000, "memory_mb": 64, "timeout_seconds": SECONDS, "max_io_calls": 10},
        "io": {"request_schema": schema},
        "egress": {"profile": "direct_allowlist", "allowed_domains": [target.host], "allowed_methods": ["POST"]},
        "mcp": {"url": target.url, "tool": tool.name, "tool_digest": digest},
    }
    if target.has_token:
        inject = {"header": "Authorization", "format": "Bearer {value}"}
        fields["secrets"] = [{"name": target.secret, "inject": inject}]
    fields["verifier_kind"] = "unverifiable"
    steps.count_values(fields, WRITING)
    text = manifest_text(fields, _comments(tool, target, notes))
    check_manifest(text, fields)
    hints = ", ".join(name.removesuffix("Hint") for name, value in tool.hints.items() if value)
    return ToolManifest(action_id, tool.name, digest, text, hints, tuple(notes))


def _comments(tool: ListedTool, target: McpTarget, notes: list[str]) -> dict[str, list[str]]:
    """Lines of comment before a field; those before `action_id` begin the file."""
    head = [f"Tool {tool.name} of {target.url}. Review it before it is in force."]
    hints = ", ".join(f"{name} {str(value).lower()}" for name, value in tool.hints.items())
    risk = [f"Not believed, by the server: {hints}."] if hints else []
    return {
        "action_id": head + [f"Review: {note}." for note in notes],
        "description": ["By the server, as data: agents and people read it. It can be wrong or hostile."],
        "risk_level": [
            *risk,
            "Chosen at the import. Policy decides what follows: high and critical wait for a person.",
        ],
        "mcp": [
            "The digest pins name, description and schema: a tool that differs is refused until it is imported again."
        ],
    }


def _described(text: object) -> tuple[str, bool]:
    """The description, and whether it had to be escaped to be visible."""
    if not isinstance(text, str):
        return "", False
    lines = text.strip().splitlines()
    is_escaped = not all(has_looks(one) for line in lines for one in line)
    shown = "\n".join(visible(line) if is_escaped else line for line in lines)
    return (shown if len(shown) <= MAX_DESCRIPTION else shown[: MAX_DESCRIPTION - 1] + "…"), is_escaped


def _request_schema(given: dict[str, Any], steps: ImportSteps) -> tuple[dict[str, Any], list[str]]:
    """The schema of the arguments as JSON Schema 2020-12 that the gateway takes, and notes. Raises LeftOut."""
    if len(msgspec.json.encode(given)) > MAX_SCHEMA_BYTES:
        raise LeftOut("its schema is larger than 1 MiB")
    own = {name: value for name, value in given.items() if name not in ("$schema", "$id")}
    schema, notes = SchemaConversion(References(own, steps), is_3_0=False, is_request=True).convert(own)
    if isinstance(schema, bool):
        raise LeftOut("its schema describes no arguments")
    schema["type"] = "object"
    is_open = "additionalProperties" in schema or "patternProperties" in schema
    if not is_open and not schema.keys() & {"allOf", "anyOf", "oneOf", "if", "$ref"}:
        schema["additionalProperties"] = False
        if "properties" not in schema:
            notes.append("the tool names no arguments, so none is accepted")
    return schema, notes
