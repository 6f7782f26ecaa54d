"""The list of tools: from discovery, page by page, and whether it has changed.

Guarantees that few manifests are asked for at a time, and that names lead back to the ids they were made from.
`has_changed` compares with the list as the client got it, so that no other use of the list hides a change. The list has
every registered action; whether a call is allowed is the gateway's to say, call by call.
"""

from bisect import bisect_right
from difflib import get_close_matches

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ListToolsResult, Tool

from gateway_client.agents import AsyncAgentClient
from gateway_client.errors import GatewayError, NotFound
from gateway_client.mcp_server.lookups import lookup_tools
from gateway_client.mcp_server.tools import digest_of, status_tool, tool_of
from gateway_client.tool_names import OWN_TOOLS, table_of

PAGE = 50
AT_ONCE = 8
"""Manifests that are asked for at the same time."""
MAX_CURSOR = 256


class Catalog:
    """The tools as of the last question to the gateway."""

    def __init__(self, client: AsyncAgentClient, page_size: int = PAGE) -> None:
        self._client = client
        self._page_size = page_size
        self._ids: dict[str, str] = {}
        self._told: dict[str, str | None] = {}
        """Id to digest of each tool as the client knows it; None for one that it knows to be there and has not read."""

    async def page(self, cursor: str | None) -> ListToolsResult:
        """The tools after `cursor`, the id of an action; tools that are no actions come first. Raises MCPError."""
        if cursor is not None and not 0 < len(cursor) <= MAX_CURSOR:
            raise MCPError(INVALID_PARAMS, "Invalid cursor")
        try:
            ids = await self._refreshed()
            first = 0 if cursor is None else bisect_right(ids, cursor)
            chosen = ids[first : first + self._page_size]
            by_id = await self._tools(chosen)
        except GatewayError as error:
            raise MCPError(INTERNAL_ERROR, f"The gateway does not list its actions: {error}. {error.hint}") from None
        before = dict.fromkeys(ids) if cursor is None else self._told
        self._told = {**before, **{one: digest_of(by_id.get(one)) for one in chosen}}
        tools = [by_id[one] for one in chosen if one in by_id]
        following = chosen[-1] if first + self._page_size < len(ids) else None
        own = [status_tool(), *lookup_tools()] if cursor is None else []
        return ListToolsResult(tools=[*own, *tools], next_cursor=following)

    async def has_changed(self) -> bool:
        """True once for each difference from the list as the client knows it. Raises GatewayError."""
        before = self._told
        ids = await self._refreshed()
        by_id = await self._tools(ids)
        if self._told is not before:
            return False  # the client has read the list meanwhile: the next look compares with what it got
        now: dict[str, str | None] = {one: digest_of(by_id.get(one)) for one in ids}
        self._told = now
        known = {one: now.get(one) if digest is None else digest for one, digest in before.items()}
        return known != now

    async def action_of(self, name: str) -> str:
        """The id of the action that a tool is. Raises MCPError for an unknown tool, GatewayError."""
        if name not in self._ids:
            await self._refreshed()
        if name not in self._ids:
            close = get_close_matches(name[:MAX_CURSOR], [*self._ids, *OWN_TOOLS], n=3)
            near = f" Did you mean {' or '.join(close)}?" if close else ""
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name[:64]!r}.{near}")
        return self._ids[name]

    async def _refreshed(self) -> list[str]:
        """Ask which actions there are; gives their ids in order."""
        actions = await self._client.actions()
        self._ids = table_of(sorted(one.action_id for one in actions))
        return sorted(self._ids.values())

    async def _tools(self, ids: list[str]) -> dict[str, Tool]:
        """Id to tool, of those actions that are tools."""
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
        return by_id
