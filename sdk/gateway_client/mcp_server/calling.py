"""One tool call: sent once, waited for as long as was agreed, and answered whatever happens.

Guarantees that calls in flight are bounded, that a call which was cancelled is sent no second time, and that every
outcome the gateway can have is an answer of the tool; only an unknown tool is an error of the protocol.
"""

from typing import Any

import anyio
from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult

from gateway_client.agents import AsyncAgentClient
from gateway_client.errors import GatewayError
from gateway_client.mcp_server import answers
from gateway_client.mcp_server.call_keys import key_of
from gateway_client.mcp_server.catalog import Catalog
from gateway_client.mcp_server.holds import HeldCall, McpHolds
from gateway_client.mcp_server.lookups import Lookups
from gateway_client.mcp_server.tasks import created, has_tasks
from gateway_client.mcp_server.tools import MAX_WAIT
from gateway_client.results import Held
from gateway_client.tool_names import CALLS_TOOL, RECEIPT_TOOL, STATUS_TOOL
from gateway_client.wire.trace_context import HEADER, caller_trace, first_traceparent

PROGRESS_SECONDS = 2.0
Context = ServerRequestContext[Any, Any]


class Calling:
    """Answers tools/call."""

    def __init__(
        self,
        client: AsyncAgentClient,
        catalog: Catalog,
        holds: McpHolds,
        lookups: Lookups,
        wait_seconds: float,
        max_in_flight: int,
    ) -> None:
        self._client = client
        self._catalog = catalog
        self._holds = holds
        self._lookups = lookups
        self._wait_seconds = wait_seconds
        self._max_in_flight = max_in_flight
        self._in_flight = 0

    async def __call__(self, context: Context, params: CallToolRequestParams) -> CallToolResult | dict[str, Any]:
        """The answer, a task in its place where the client takes one. Raises MCPError for an unknown tool."""
        if self._in_flight >= self._max_in_flight:
            reason = f"{self._in_flight} calls of this session are under way"
            return answers.refused("too_many_calls", reason, "Wait until one of them is answered.", is_retryable=True)
        self._in_flight += 1
        try:
            return await self._answer(context, params)
        except GatewayError as error:
            return answers.failed(error)
        finally:
            self._in_flight -= 1

    async def _answer(self, context: Context, params: CallToolRequestParams) -> CallToolResult | dict[str, Any]:
        arguments = params.arguments or {}
        if params.name == STATUS_TOOL:
            return await self._status(context, arguments)
        if params.name == CALLS_TOOL:
            return await self._lookups.calls(arguments)
        if params.name == RECEIPT_TOOL:
            return await self._lookups.receipt(arguments)
        action_id = await self._catalog.action_of(params.name)
        caller_trace.set(_trace_of(context, params))
        try:
            done = await self._client.execute(action_id, arguments, idempotency_key=key_of(context, params))
        except ValueError as error:  # what the library refuses to send; its texts quote no value
            return answers.refused("invalid_arguments", str(error), "Change the arguments.")
        if not isinstance(done, Held):
            return answers.executed(done)
        call = self._holds.add(done, action_id)
        if has_tasks(context):
            return created(call)
        return await self._waited(context, call, self._wait_seconds)

    async def _status(self, context: Context, arguments: dict[str, Any]) -> CallToolResult:
        approval_id, wait = arguments.get("approval_id"), arguments.get("wait_seconds", 0)
        if not isinstance(approval_id, str) or isinstance(wait, bool) or not isinstance(wait, int | float):
            following = "Give approval_id as text, and wait_seconds as a number or not at all."
            return answers.refused("invalid_arguments", "approval_id or wait_seconds has another type", following)
        call = self._holds.get(approval_id)
        if call is None or call.is_cancelled:
            following = "Give the approval_id of a call that this session made and that was held."
            return answers.refused("approval_not_found", "no such held call in this session", following)
        seconds = float(min(wait, MAX_WAIT)) if wait > 0 else 0.0  # no float of an integer with hundreds of digits
        return await self._waited(context, call, seconds)

    async def _waited(self, context: Context, call: HeldCall, seconds: float) -> CallToolResult:
        """Wait at most so many seconds for the answer, and notify a client that asked for progress."""
        waited = 0.0
        while waited < seconds and not call.decided.is_set():
            message = f"{call.action_id} waits for an operator: {call.held.approval_id}"
            await context.session.report_progress(waited, seconds, message)
            step = min(PROGRESS_SECONDS, seconds - waited)
            with anyio.move_on_after(step):
                await call.decided.wait()
            waited += step
        return call.answer


def _trace_of(context: Context, params: CallToolRequestParams) -> str | None:
    """The trace that the request names: in its own `_meta` (SEP-414), or else in the header of its transport."""
    headers = getattr(context.request, "headers", {})
    return first_traceparent(dict(params.meta or {}).get(HEADER), headers.get(HEADER))
