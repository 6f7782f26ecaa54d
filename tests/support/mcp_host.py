"""An MCP host for tests: the official client of the package `mcp`, and `gatectl mcp` that it started."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from tests.support.gatectl import SCRIPT, Gatectl


@dataclass
class Host:
    """An MCP host: a client in an event loop of its own, and the server that it has started."""

    portal: BlockingPortal
    client: Client

    @cached_property
    def schemas(self) -> dict[str, Draft202012Validator]:
        """The output schema of each tool. Some clients validate errors against it too."""
        tools = self.portal.call(self.client.list_tools).tools
        return {tool.name: Draft202012Validator(tool.output_schema or {}) for tool in tools}

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
        async def call() -> CallToolResult:
            return await self.client.call_tool(name, arguments or {})

        return self.portal.call(call)

    def told(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The structured content, which is also there as text for hosts that read text alone."""
        result = self.call(name, arguments)
        (text,) = result.content
        assert text.type == "text"
        assert json.loads(text.text) == result.structured_content
        content: dict[str, Any] = result.structured_content
        assert result.is_error == ("error" in content) == (content["decision"] in {"denied", "error"})
        self.schemas[name].validate(content)
        return content


@contextmanager
def hosted(gatectl: Gatectl, *arguments: str, **options: Any) -> Iterator[Host]:
    """A host with a session of its own; its client closes the server's input at the end."""
    started = StdioServerParameters(command=SCRIPT, args=["mcp", *arguments], env=gatectl.environ)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(started), **options)) as client,
    ):
        yield Host(portal, client)
