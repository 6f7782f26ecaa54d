"""The list of tools: from discovery, page by page, and whether it has changed.

Guarantees that a page asks for a bounded number of manifests, few at a time, and that names lead back to the ids they
were made from. What is listed is what is registered; whether a call is allowed is the gateway's to say, call by call.
"""

from bisect import bisect_right
from difflib import get_close_matches

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ListToolsResult, Tool

from gateway_client.agents import AsyncAgentClient
from gateway_client.errors import GatewayError, NotFound
from gateway_client.mcp_server.names import STATUS_TOOL, table_of
from gateway_client.mcp_server.tools import status_tool, tool_of

PAGE = 50
AT_ONCE = 8
"""Manifests that are asked for at the same time."""
MAX_CURSOR = 256
Mark = tuple[tuple[str, str], ...]


class Catalog:
    """What can be called, as far as it was asked for last."""

    def __init__(self, client: AsyncAgentClient, page_size: int = PAGE) -> None:
        self._client = client
        self._page_size = page_size
        self._ids: dict[str, str] = {}
        self._mark: Mark | None = None

    async def page(self, cursor: str | None) -> ListToolsResult:
        """The tools after `cursor`, the id of an action; the status tool comes first. Raises MCPError."""
        if cursor is not None and not 0 < len(cursor) <= MAX_CURSOR:
            raise MCPError(INVALID_PARAMS, "Invalid cursor")
        try:
            await self.refresh()
            ids = sorted(self._ids.values())
            first = 0 if cursor is None else bisect_right(ids, cursor)
            chosen = ids[first : first + self._page_size]
            tools = await self._tools(chosen)
        except GatewayError as error:
            raise MCPError(INTERNAL_ERROR, f"The gateway does not list its actions: {error}. {error.hint}") from None
        following = chosen[-1] if first + self._page_size < len(ids) else None
        return ListToolsResult(tools=[status_tool(), *tools] if cursor is None else tools, next_cursor=following)

    async def refresh(self) -> bool:
        """Ask which actions there are; True when others than at the last time. Raises GatewayError."""
        actions = await self._client.actions()
        self._ids = table_of(sorted(one.action_id for one in actions))
        before, self._mark = self._mark, tuple(sorted((one.action_id, one.version) for one in actions))
        return before is not None and before != self._mark

    async def action_of(self, name: str) -> str:
        """The id of the action that a tool is. Raises MCPError for an unknown tool, GatewayError."""
        if name not in self._ids:
            await self.refresh()
        if name not in self._ids:
            close = get_close_matches(name[:MAX_CURSOR], [*self._ids, STATUS_TOOL], n=3)
            near = f" Did you mean {' or '.join(close)}?" if close else ""
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:64]!r}.{near}")
        return self._ids[name]

    async def _tools(self, ids: list[str]) -> list[Tool]:
        by_id: dict[str, Tool] = {}
        problems: list[GatewayError] = []
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def ask(action_id: str) -> None:
            async with limiter:
                try:
                    tool = tool_of(await self._client.manifest(action_id))
                except NotFound:  # gone since the list
                    return
                except GatewayError as error:
                    problems.append(error)
                    return
            if tool is not None:
                by_id[action_id] = tool

        async with anyio.create_task_group() as group:
            for action_id in ids:
                group.start_soon(ask, action_id)
        if problems:
            raise problems[0]
        return [by_id[action_id] for action_id in ids if action_id in by_id]
