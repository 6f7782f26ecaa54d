"""MCP servers for tests of calls of tools: the official package's own, and one that answers as a test says."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send

from ipc.mcp_tools import call_message, tool_digest
from ipc.plan import Plan, PlannedRequest, PlannedTool
from tests.support.served_application import served_application
from tests.support.worker_plans import builtin, digest_of, http_plan, text
from tests.support.worker_upstream import Upstream, upstream

Tool = dict[str, Any]
ADD: Tool = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
}
ADD_DIGEST = tool_digest(ADD)
EVENTS = "text/event-stream"


def official_server() -> MCPServer:
    """Three tools that work and one that fails."""
    server = MCPServer("official")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def greet(name: str) -> str:
        """Greet a person."""
        return f"Hello, {name}."

    @server.tool()
    def place(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        """Name a region."""
        return region

    @server.tool()
    def fail(reason: str) -> str:
        """Fail."""
        raise ToolError(reason)

    return server


def listed(server: MCPServer) -> dict[str, Tool]:
    """The tools of a server by name, as it lists them."""
    tools = anyio.run(server.list_tools)
    return {tool.name: tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools}


@dataclass
class Served:
    """A server and the requests that it got: method, headers, as HTTP has them."""

    address: str
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def served(
    server: MCPServer, *, json_response: bool = False, refuses: Callable[[dict[str, str]], bool] = lambda _: False
) -> Iterator[Served]:
    """Serve streamable HTTP at `/mcp`. `refuses`: headers of requests that are answered 400, as old servers do."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(json_response=json_response, transport_security=security)
    listener = socket.create_server(("127.0.0.1", 0))
    there = Served(f"127.0.0.1:{listener.getsockname()[1]}")
    with served_application(_watched(app, there, refuses), listener):
        yield there


def _watched(app: ASGIApp, there: Served, refuses: Callable[[dict[str, str]], bool]) -> ASGIApp:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            there.requests.append((scope["method"], headers))
            if refuses(headers):
                await send({"type": "http.response.start", "status": 400, "headers": []})
                await send({"type": "http.response.body", "body": b"Bad Request"})
                return
        await app(scope, receive, send)

    return serve


Reply = tuple[str, str, bytes] | Callable[[socket.socket], None]
"""Status, media type and body; or what writes to the connection itself."""


def result(number: int, value: Any) -> bytes:
    """A JSON-RPC answer."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": value}).encode()


def event(data: bytes) -> bytes:
    """One server-sent event."""
    return b"event: message\ndata: " + data + b"\n\n"


def in_json(number: int, value: Any) -> Reply:
    """An answer as one JSON body."""
    return "200 OK", "application/json", result(number, value)


@contextmanager
def scripted(answers: Callable[[str, dict[str, Any], dict[str, str]], Reply]) -> Iterator[Upstream]:
    """A server that answers each request with `answers(JSON-RPC method or "DELETE", message, headers)`."""
    came: list[Upstream] = []

    def reply(connection: socket.socket) -> None:
        method, headers, message = parsed(came[0].requests[-1])
        answer = answers(message.get("method", method), message, headers)
        if callable(answer):
            answer(connection)
            return
        status, media, body = answer
        head = f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        connection.sendall(head.encode() + b"\r\n" + body)

    with upstream(reply) as up:
        came.append(up)
        yield up


def parsed(request: bytes) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Method, headers and JSON body of a request."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return lines[0].split(" ")[0], headers, json.loads(body) if body else {}


def tool_action(
    action_id: str, host: str, tool: Tool = ADD, *, risk_level: str = "low", seconds: float = 300
) -> dict[str, Any]:  # fmt: skip
    """A manifest that calls the tool at `http://host/mcp`."""
    return {
        "action_id": action_id, "version": "1.0.0", "provider_module_digest": "builtin:mcp",
        "required_imports": ["http"], "risk_level": risk_level, "resource_limits": {"timeout_seconds": seconds},
        "verifier_kind": "unverifiable", "io": {"request_schema": tool["inputSchema"]},
        "egress": {"profile": "direct_allowlist", "allowed_domains": [host], "allowed_methods": ["POST"]},
        "mcp": {"url": f"http://{host}/mcp", "tool": tool["name"], "tool_digest": tool_digest(tool)},
    }  # fmt: skip


def tool_plan(address: str, name: str = "add", digest: str = ADD_DIGEST, arguments: Any = None, **changes: Any) -> Plan:
    """A plan of the built-in `mcp` that calls a tool of the server at `address`."""
    body = call_message(name, {"a": 2, "b": 3} if arguments is None else arguments)
    planned = PlannedRequest("POST", "http://upstream.test/mcp", (), body, tool=PlannedTool(name, digest))
    call = {"method": "POST", "url": planned.url, "headers": [], "body": body}
    values: dict[str, Any] = {
        "provider_module_digest": digest_of(builtin("mcp")), "http_request": planned,
        "provider_input": text({"request": {}, "call": call}), "verifier_kind": "unverifiable",
    }  # fmt: skip
    return http_plan(address=address, **(values | changes))
