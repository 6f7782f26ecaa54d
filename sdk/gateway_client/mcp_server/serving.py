"""The MCP server of one session: one client library, one key, one lease at a time, over standard input and output.

Guarantees that standard output carries the protocol alone, that calls in flight and results are bounded, and that the
end of standard input ends everything, as SIGINT does. Serves every protocol revision of the installed `mcp` package.
"""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from gateway_client.agents import AsyncAgentClient
from gateway_client.mcp_server.calling import Calling
from gateway_client.mcp_server.catalog import Catalog
from gateway_client.mcp_server.holds import McpHolds
from gateway_client.mcp_server.lookups import Lookups
from gateway_client.mcp_server.stdio import stdio
from gateway_client.mcp_server.tasks import serve_tasks
from gateway_client.mcp_server.watch import WatchLoop
from gateway_client.version import __version__

INSTRUCTIONS = (
    "Every tool is an action behind an enforcement gateway, which decides each call. An answer has `decision`: "
    "`executed`, with `output`; or `pending_approval`: a person has to approve the call first, so do not repeat it, "
    "ask gateway_approval_status with its approval_id; or `denied` or `error`, with `reason` and `next`, what to do; "
    "repeat a call unchanged only where `is_retryable` is true, after `retry_after_seconds`. "
    "gateway_recent_calls lists what became of your calls, also of one whose answer was lost."
)
MAX_LISTENERS = 8
INTERRUPTED = 130
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class McpOptions:
    """`wait_seconds`: how long a call stays open for an operator's decision. `refresh_seconds`: between two looks for
    actions that came or went; 0 for never. `max_in_flight`: calls that are not answered yet; more are refused.
    `receipt_keys`: what receipts are verified with here; None leaves that to the gateway."""

    wait_seconds: float = 30.0
    refresh_seconds: float = 30.0
    max_in_flight: int = 32
    receipt_keys: Mapping[str, Any] | None = None


def serve(client: AsyncAgentClient, options: McpOptions) -> None:
    """Serve until standard input ends. SIGINT ends the process with 130."""
    # A write to a host that has stopped reading can't be cancelled, and there is nothing to save.
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))
    anyio.run(_serve, client, options)


def server_for(
    client: AsyncAgentClient, tasks: TaskGroup, options: McpOptions, holds: McpHolds | None = None
) -> Server[Any]:
    """The server; `tasks` is where it polls holds and looks for changes. `holds`: its own, unless its caller looks at
    them, too."""
    catalog, holds = Catalog(client), holds or McpHolds(client, tasks)
    lookups = Lookups(client, options.receipt_keys)
    call = Calling(client, catalog, holds, lookups, options.wait_seconds, options.max_in_flight)
    bus = InMemorySubscriptionBus()
    listen = ListenHandler(bus, max_subscriptions=MAX_LISTENERS)
    watch = WatchLoop(catalog, bus, options.refresh_seconds)

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        page = await catalog.page(None if params is None else params.cursor)
        watch.begin(context, tasks)
        return page

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        return cast(CallToolResult, await call(context, params))  # a task is a dict, which the package passes on

    server: Server[Any] = Server(
        "action-gateway", title="Action gateway", version=__version__, instructions=INSTRUCTIONS,
        on_list_tools=list_tools, on_call_tool=call_tool,
        on_subscriptions_listen=listen if options.refresh_seconds > 0 else None,
        # Headers that repeat arguments decide nothing. Without this, a call over HTTP has all tools listed first.
        get_tool_input_schema=lambda _name: None,
    )  # fmt: skip
    serve_tasks(server, holds)
    return server


async def _serve(client: AsyncAgentClient, options: McpOptions) -> None:
    async with client, anyio.create_task_group() as tasks, stdio() as (received, sent):
        server = server_for(client, tasks, options)
        changes = NotificationOptions(tools_changed=options.refresh_seconds > 0)
        await server.run(received, sent, server.create_initialization_options(changes))
        tasks.cancel_scope.cancel()
