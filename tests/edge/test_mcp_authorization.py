"""The whole way of the official package's client to a call at `/mcp`: discovery, registration, a code with PKCE, a
token for this resource, the call."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.support.authorization_server import authorization_server
from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import ANSWER_SECONDS, Gateway, gateway
from tests.support.issued_tokens import behind_an_edge
from tests.support.ports import free_port
from tests.support.upstream import Upstream

CALLBACK = "http://127.0.0.1:1/callback"


class Store:
    """The client's memory of tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """The browser of a user who agrees: it follows one redirection, and tells the client what came back."""

    def __init__(self) -> None:
        self.asked: list[httpx2.URL] = []

    async def open(self, url: str) -> None:
        self.asked.append(httpx2.URL(url))

    async def come_back(self) -> AuthorizationCodeResult:
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.get(self.asked[-1])
        back = httpx2.URL(answer.headers["location"])
        assert str(back).startswith(CALLBACK)
        return AuthorizationCodeResult(
            code=back.params["code"], state=back.params.get("state"), iss=back.params.get("iss")
        )  # fmt: skip


@pytest.fixture
def issuer() -> Iterator[str]:
    with authorization_server() as address:
        yield address


@pytest.fixture
def serving(up: Upstream, issuer: str, tmp_path: Path) -> Iterator[tuple[Gateway, Edge]]:
    """A gateway and its edge, whose public address is the one that clients use."""
    listen = f"127.0.0.1:{free_port()}"
    public = f"http://{listen}"
    mcp = f'[mcp]\nauthorization_servers = ["{issuer}"]\n'
    with gateway(tmp_path, behind_an_edge(tmp_path, up, public, issuer)) as gate:
        config = edge_config(tmp_path, gate.ready["client_socket"], mcp, listen=listen, public=public)
        with edge(config) as before:
            yield gate, before


def test_a_client_that_knows_the_address_alone_finds_the_issuer_gets_a_token_and_calls(
    serving: tuple[Gateway, Edge], issuer: str
) -> None:
    gate, before = serving
    resource, store, browser = f"{before.address}/mcp", Store(), Browser()
    metadata = OAuthClientMetadata(client_name="a host", redirect_uris=[AnyUrl(CALLBACK)])
    auth = OAuthClientProvider(resource, metadata, store, browser.open, browser.come_back)

    async def call() -> dict[str, Any]:
        async with httpx2.AsyncClient(auth=auth, timeout=ANSWER_SECONDS, trust_env=False) as http:
            transport = streamable_http_client(resource, http_client=http)
            async with Client(transport) as client:
                answer = await client.call_tool("text_digest", {"text": "a b"})
                return dict(answer.structured_content or {})

    told = anyio.run(call)
    assert (told["decision"], told["output"]["words"]) == ("executed", 2)
    (asked,) = browser.asked
    assert (asked.params["resource"], asked.params["code_challenge_method"]) == (resource, "S256")
    assert asked.params["scope"] == "tools:call"
    event = gate.events(event_type="ActionCall")[0]
    assert (event["identity_issuer"], event["token_binding"]) == (issuer, "bearer")
