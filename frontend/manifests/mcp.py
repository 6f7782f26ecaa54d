"""Section `mcp` of a manifest: the tool of an MCP server that an action calls, and the request that calls it.

The request of the action becomes the tool's arguments. The planned body is the very message that a worker sends
(workers/host/tool_calls.py), so that a person is shown what the server gets.
"""

from typing import Any

import msgspec

from frontend.manifests.fields import Section, TextRule
from frontend.manifests.urls import UrlTemplate
from frontend.manifests.values import refuse_value
from ipc.mcp_tools import call_message
from ipc.plan import PlannedRequest, PlannedTool
from ipc.texts.canonical import NotCanonical

TOOL_MODULE = "builtin:mcp"
"""The one module that calls tools."""
TOOL_METHOD = "POST"
_URL = TextRule(r"https?://[!-z|~]+", "the http:// or https:// address of an MCP server, at most 4096 characters", 4096)
_TOOL = TextRule(r"[A-Za-z0-9_./-]+", "a tool's name: letters, digits, `_`, `-`, `.`, `/`, at most 128", 128)
_DIGEST = TextRule(r"sha256:[0-9a-f]{64}", "sha256: and 64 lower-case hex digits", 71)


class McpTool(msgspec.Struct, frozen=True):
    """Section `mcp`: a server's address, one of its tools, and the digest of the tool as a person has read it."""

    url: str
    tool: str
    tool_digest: str


class CompiledTool:
    """The calls of one tool, one for each request."""

    def __init__(self, tool: McpTool) -> None:
        """Raises TemplateRefused for the URL."""
        self.url = UrlTemplate(tool.url)
        self._tool = tool

    def render(self, request: dict[str, Any]) -> tuple[PlannedRequest, str]:
        """(request to send, host). Raises GateError schema_violation."""
        url, host = self.url.render({})
        try:
            body = call_message(self._tool.tool, request)
        except NotCanonical:
            refuse_value("", "not_canonical")
        planned = PlannedTool(self._tool.tool, self._tool.tool_digest)
        return PlannedRequest(TOOL_METHOD, url, (), body, tool=planned), host


def mcp_section(top: Section) -> McpTool | None:
    """Read the section."""
    section = top.section("mcp")
    if section is None:
        return None
    tool = McpTool(
        url=section.text("url", _URL),
        tool=section.text("tool", _TOOL),
        tool_digest=section.text("tool_digest", _DIGEST),
    )
    section.refuse_unknown()
    return tool
