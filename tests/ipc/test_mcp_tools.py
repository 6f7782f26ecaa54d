"""The digest of an MCP server's tool."""

import hashlib
from typing import Any

import pytest

from ipc.mcp_tools import tool_digest

TOOL: dict[str, Any] = {
    "name": "read",
    "description": "Reads a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def test_the_digest_covers_name_description_and_input_schema_in_canonical_json() -> None:
    text = (
        b'{"description":"Reads a file.",'
        b'"inputSchema":{"properties":{"path":{"type":"string"}},"type":"object"},"name":"read"}'
    )
    assert tool_digest(TOOL) == "sha256:" + hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("more", [{"title": "Read"}, {"annotations": {"readOnlyHint": True}}, {"_meta": {"x": 1}}])
def test_members_that_are_not_pinned_do_not_change_the_digest(more: dict[str, Any]) -> None:
    assert tool_digest({**TOOL, **more}) == tool_digest(TOOL)


def test_a_description_of_null_is_an_absent_one() -> None:
    without = {name: value for name, value in TOOL.items() if name != "description"}
    assert tool_digest({**TOOL, "description": None}) == tool_digest(without)
