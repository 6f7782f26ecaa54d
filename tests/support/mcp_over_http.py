"""Clients of the official MCP package for the edge's `/mcp`, and access tokens for it."""

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

RESOURCE = f"{PUBLIC}/mcp"
MCP = '[mcp]\nauthorization_servers = ["https://login.example"]\n'
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def access_token(**changes: object) -> str:
    """A token for `/mcp`, with the scope that it needs."""
    return token(**({"aud": RESOURCE, "scope": "openid tools:call"} | changes))


def asked(serving: Edge, shown: str | None, **headers: str) -> httpx.Response:
    """The answer to a ping."""
    credential = {} if shown is None else {"Authorization": f"Bearer {shown}"}
    client = serving.clients[0] if serving.clients else serving.client()
    return client.post("/mcp", json=PING, headers={**ACCEPT, **credential, **headers})


@asynccontextmanager
async def mcp_client(edge: Edge, shown: str, mode: str = "auto", **settings: Any) -> AsyncIterator[Client]:
    """A client that shows a token with each request."""
    verify = edge.trusting() if edge.roots is not None else False
    headers = {"Authorization": f"Bearer {shown}"}
    async with httpx2.AsyncClient(headers=headers, verify=verify, timeout=ANSWER_SECONDS, trust_env=False) as http:
        transport = streamable_http_client(f"{edge.address}/mcp", http_client=http)
        async with Client(transport, mode=mode, **settings) as client:
            yield client
