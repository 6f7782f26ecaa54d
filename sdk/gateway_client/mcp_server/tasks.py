"""The tasks extension of MCP (SEP-2663, `io.modelcontextprotocol/tasks`, revision 2026-07-28): a hold is a task.

The client declares the extension with each request; one that does not gets no task, and -32021 for these methods. A
task is `working` until the operator has decided: the input that is missing is not the client's to give, so none is ever
`input_required`. It is `completed` with what the call would have answered, refusals included (`isError`), and
`cancelled` when the client gave it up, which takes nothing back from the operators.
"""

from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway_client.mcp_server.answers import HOLD_SECONDS, iso
from gateway_client.mcp_server.holds import KEEP_SECONDS, HeldCall, McpHolds

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2000
Context = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """Parameters of tasks/get and tasks/cancel."""

    task_id: str


class UpdateParams(TaskParams):
    """Parameters of tasks/update."""

    input_responses: dict[str, Any] | None = None


def has_tasks(context: Context) -> bool:
    """True when this request's client takes a task for an answer."""
    capabilities = context.session.client_capabilities
    declared = (capabilities.extensions or {}) if capabilities is not None else {}
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS and EXTENSION in declared


def created(call: HeldCall) -> dict[str, Any]:
    """The answer of tools/call that names the task."""
    return {"resultType": "task", **_seed(call)}


def serve_tasks(server: Server[Any], holds: McpHolds) -> None:
    """Register the three methods, and declare the extension."""

    async def get(context: Context, params: TaskParams) -> dict[str, Any]:
        return _detailed(_known(context, holds, params))

    async def update(context: Context, params: UpdateParams) -> dict[str, Any]:
        _known(context, holds, params)
        return {}  # no input is ever outstanding, and responses to what is not outstanding are passed over

    async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
        holds.cancel(_known(context, holds, params))
        return {}

    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/update", UpdateParams, update)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)


def _known(context: Context, holds: McpHolds, params: TaskParams) -> HeldCall:
    """The task. Raises MCPError."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
    if not has_tasks(context):
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", required)
    call = holds.get(params.task_id)
    if call is None:
        raise MCPError(INVALID_PARAMS, "Task not found")
    return call


def _seed(call: HeldCall) -> dict[str, Any]:
    return {
        "taskId": call.held.approval_id, "status": "working", "createdAt": iso(call.held_at),
        "lastUpdatedAt": iso(call.changed_at), "ttlMs": int((HOLD_SECONDS + KEEP_SECONDS) * 1000),
        "pollIntervalMs": POLL_MS, "statusMessage": f"{call.action_id} waits for an operator to approve it",
    }  # fmt: skip


def _detailed(call: HeldCall) -> dict[str, Any]:
    """The answer of tasks/get."""
    fields = _seed(call)
    if call.is_cancelled:
        return fields | {"status": "cancelled", "statusMessage": "given up; an operator may still decide about it"}
    if call.outcome is None:
        return fields
    result = call.outcome.model_dump(by_alias=True, mode="json", exclude_none=True)
    message = "the call is over: see the result" if not call.outcome.is_error else "the call failed or was refused"
    return fields | {"status": "completed", "statusMessage": message, "result": result}
