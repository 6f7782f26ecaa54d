"""Tells a client that the list of tools has changed: a reload of the gateway brought other actions or manifests.

It begins to look once the list was asked for. Clients of 2026-07-28 hear it on the streams that they opened
(`subscriptions/listen`), older ones as a notification. A look that fails is passed over: the next one comes.
"""

from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp.server import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway_client.errors import GatewayError
from gateway_client.mcp_server.catalog import Catalog


class WatchLoop:
    """One look every `seconds`; none when that is 0."""

    def __init__(self, catalog: Catalog, bus: InMemorySubscriptionBus, seconds: float) -> None:
        self._catalog = catalog
        self._bus = bus
        self._seconds = seconds
        self._session: ServerSession | None = None
        self._has_begun = False

    def begin(self, context: ServerRequestContext[Any, Any], tasks: TaskGroup) -> None:
        """Look from now on, and tell the client of this request."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._session = context.session
        if self._seconds > 0 and not self._has_begun:
            self._has_begun = True
            tasks.start_soon(self._look)

    async def _look(self) -> None:
        while True:
            await anyio.sleep(self._seconds)
            with suppress(GatewayError):
                if await self._catalog.has_changed():
                    await self._tell()

    async def _tell(self) -> None:
        await self._bus.publish(ToolsListChanged())
        if self._session is not None:
            await self._session.send_tool_list_changed()
