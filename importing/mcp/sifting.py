"""The messages of a server, without the tools for which the official package would refuse a whole listing.

Guarantees that every other message passes unchanged, and that each tool taken out is listed with its reason.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

Item = SessionMessage | Exception


class SiftedMessages:
    """A stream to read messages from, as the package has them. Set `revision` before the tools are asked for."""

    def __init__(self, most: int) -> None:
        """`most`: tools of one listing that are looked at, others are dropped."""
        self._messages: Any = None
        self._most = most
        self.revision = ""
        self.refused: list[tuple[str, str]] = []
        """Name and reason of each tool that was taken out."""

    @asynccontextmanager
    async def over(self, transport: Any) -> AsyncGenerator[Any]:
        """The transport, with this stream in the place of its own."""
        async with transport as (self._messages, sending):
            yield self, sending

    async def __aenter__(self) -> Self:
        await self._messages.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._messages.__aexit__(kind, error, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        item: Item = await self._messages.__anext__()
        if self.revision and isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result = item.message.result
            if isinstance(tools := result.get("tools"), list):
                result["tools"] = [tool for tool in tools[: self._most] if self._is_taken(tool, result)]
        return item

    def _is_taken(self, tool: Any, listing: dict[str, Any]) -> bool:
        reason = _refusal(tool, listing, self.revision)
        if reason is not None:
            name = tool.get("name") if isinstance(tool, dict) else None
            self.refused.append((name if isinstance(name, str) else "", f"not as MCP has it: {reason}"))
        return reason is None


def _refusal(tool: Any, listing: dict[str, Any], revision: str) -> str | None:
    """Why the package would refuse, or silently leave out, this tool. None where it would not, or where something
    else of the listing is wrong."""
    try:
        validate_server_result("tools/list", revision, {**listing, "tools": [tool]})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            if problem["loc"][:2] == ("tools", 0):
                place = ".".join(map(str, problem["loc"][2:]))
                return f"{place}: {problem['msg']}" if place else problem["msg"]
        return None
    return find_invalid_x_mcp_header(tool["inputSchema"]) if revision in MODERN_PROTOCOL_VERSIONS else None
