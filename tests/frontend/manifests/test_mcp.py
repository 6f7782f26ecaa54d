"""Manifests of actions that call a tool of an MCP server."""

from typing import Any

import pytest

from frontend.manifests.mcp import CompiledTool, McpTool
from ipc.plan import PlannedRequest, PlannedTool
from tests.frontend.actions.conftest import Read, assert_refused

DIGEST = "sha256:" + "ab" * 32


def test_a_manifest_of_a_tool_is_read(read_kind: Read) -> None:
    manifest, problems = read_kind("tool")
    assert problems == []
    assert manifest is not None
    assert manifest.mcp == McpTool("https://mcp.example.com/mcp", "read_text_file", DIGEST)
    assert manifest.profile == "http"


def test_the_request_is_planned_as_the_arguments_of_the_tool() -> None:
    tool = CompiledTool(McpTool("https://mcp.example.com:8443/mcp?x=1", "read", DIGEST))
    body = '{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"a":"é","b":1},"name":"read"}}'
    planned = PlannedRequest("POST", "https://mcp.example.com:8443/mcp?x=1", (), body, tool=PlannedTool("read", DIGEST))
    assert tool.render({"b": 1, "a": "é"}) == (planned, "mcp.example.com")


@pytest.mark.parametrize(
    ("kind", "change", "field", "words"),
    [
        ("tool", {"mcp": None}, "provider_module_digest", "needs the section mcp"),
        ("tool", {"provider_module_digest": "builtin:http"}, "provider_module_digest", "builtin:mcp"),
        ("tool", {"required_imports": []}, "mcp", "needs the import http"),
        ("http", {"mcp": {"url": "https://api.example.com/", "tool": "t", "tool_digest": DIGEST}}, "template", "never"),
        ("tool", {"egress": {"allowed_methods": ["GET"]}}, "egress.allowed_methods", "does not have POST"),
        ("tool", {"egress": {"allowed_methods": None}}, "egress", "allowed_methods is missing"),
        ("tool", {"egress": {"allowed_domains": ["a.example.com"]}}, "mcp.url", "not in egress.allowed_domains"),
        ("tool", {"io": None}, "io.request_schema", "an object of arguments"),
        ("tool", {"io": {"request_schema": {"type": ["object", "null"]}}}, "io.request_schema", "an object"),
        ("tool", {"verifier_kind": "http_status"}, "verifier_kind", "says nothing of a tool"),
        ("tool", {"verifier_kind": "response_schema"}, "verifier_kind", "needs io.response_schema"),
        ("tool", {"mcp": {"url": "https://{host}/mcp"}}, "mcp.url", "must be the http"),
        ("tool", {"mcp": {"url": "https://mcp.example.com/a/../b"}}, "mcp.url", "dot segments"),
        ("tool", {"mcp": {"url": "ftp://mcp.example.com/"}}, "mcp.url", "must be the http"),
        ("tool", {"mcp": {"tool": "two words"}}, "mcp.tool", "must be a tool's name"),
        ("tool", {"mcp": {"tool": None}}, "mcp.tool", "is missing"),
        ("tool", {"mcp": {"tool_digest": "sha256:AB"}}, "mcp.tool_digest", "64 lower-case hex digits"),
        ("tool", {"mcp": {"toool": "x"}}, "mcp.toool", "unknown field"),
        ("tool", {"secrets": [{"name": "t", "inject": {"header": "Mcp-Name"}}]}, "secrets[0].inject.header", "MCP"),
        ("tool", {"secrets": [{"name": "t", "inject": {"header": "X-A"}, "domains": ["b.example.com"]}]},
         "secrets[0].domains", "does not have mcp.example.com"),
    ],
)  # fmt: skip
def test_a_manifest_that_would_not_call_its_tool_is_refused(
    read_kind: Read, kind: str, change: dict[str, Any], field: str, words: str
) -> None:
    assert_refused(read_kind(kind, change), field, words)
