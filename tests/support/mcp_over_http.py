"""Clients of the official MCP package for the edge's `/mcp`, and access tokens for it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.edge_process import PUBLIC, Edge
from tests.support.gateway import ANSWER_SECONDS
from tests.support.issued_tokens import token
from tests.support.proofs import Key, proof

RESOURCE = f"{PUBLIC}/mcp"
MCP = '[mcp]\nauthorization_servers = ["https://login.example"]\n'
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
"""Revisions of the protocol."""
OF_MCP = "io.modelcontextprotocol"
ACCEPT = {"Accept": "application/json, text/event-stream"}


def access_token(**changes: object) -> str:
    """A token for `/mcp`, with the scope that it needs."""
    return token(**({"aud": RESOURCE, "scope": "openid tools:call"} | changes))


def asked(serving: Edge, shown: str | None, **headers: str) -> httpx.Response:
    """The answer to a ping."""
    credential = {} if shown is None else {"Authorization": f"Bearer {shown}"}
    client = serving.clients[0] if serving.clients else serving.client()
    return client.post("/mcp", json=PING, headers={**ACCEPT, **credential, **headers})


def bound_token(key: Key, **changes: object) -> str:
    """An access token that is bound to a key (RFC 9449)."""
    return access_token(**({"cnf": {"jkt": key.jkt}} | changes))


def request_proof(key: Key, shown: str, **changes: Any) -> str:
    """A proof for one request to `/mcp`; keywords change its claims."""
    return proof(key, "POST", RESOURCE, shown, **changes)


def asked_with(serving: Edge, shown: str, *proofs: str, scheme: str = "DPoP", **headers: str) -> httpx.Response:
    """The answer to a ping with these proofs."""
    client = serving.clients[0] if serving.clients else serving.client()
    credential = [("Authorization", f"{scheme} {shown}"), *(("DPoP", one) for one in proofs)]
    return client.post("/mcp", json=PING, headers=[*ACCEPT.items(), *credential, *headers.items()])


@asynccontextmanager
async def mcp_client(edge: Edge, shown: str, mode: str = "auto", **settings: Any) -> AsyncIterator[Client]:
    """A client that shows a token with each request."""
    verify = edge.trusting() if edge.roots is not None else False
    headers = {"Authorization": f"Bearer {shown}"}
    async with httpx2.AsyncClient(headers=headers, verify=verify, timeout=ANSWER_SECONDS, trust_env=False) as http:
        transport = streamable_http_client(f"{edge.address}/mcp", http_client=http)
        async with Client(transport, mode=mode, **settings) as client:
            yield client


def call_of(name: str, arguments: dict[str, Any], revision: str = HANDSHAKE, **meta: Any) -> dict[str, Any]:
    """The body and the headers of a request that calls a tool, without a credential; `meta` is more of its `_meta`."""
    headers = {**ACCEPT, "Content-Type": "application/json", "MCP-Protocol-Version": revision}
    if revision == MODERN:
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": name}
        meta |= {f"{OF_MCP}/protocolVersion": revision, f"{OF_MCP}/clientCapabilities": {}}
    params = {"name": name, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, "headers": headers}


def tool_called(
    serving: Edge, shown: str, name: str, arguments: dict[str, Any], revision: str = HANDSHAKE, *,
    meta: dict[str, Any] | None = None, headers: dict[str, str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The structured content that a call of a tool answers."""
    request = call_of(name, arguments, revision, **(meta or {}))
    client = serving.clients[0] if serving.clients else serving.client()
    credential = {"Authorization": f"Bearer {shown}"}
    answer = client.post("/mcp", json=request["json"], headers=request["headers"] | credential | (headers or {}))
    assert answer.status_code == 200, answer.text
    (data,) = [line for line in answer.text.splitlines() if '"result"' in line]
    content: dict[str, Any] = json.loads(data.removeprefix("data:"))["result"]["structuredContent"]
    return content
