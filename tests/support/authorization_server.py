"""An OAuth authorization server for tests: the endpoints of the official MCP package, and tokens as access_token has
them. Its only user agrees to everything.
"""

import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette

from tests.support.issued_tokens import token
from tests.support.served_application import served_application


class _Grants(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Clients and codes in memory. A token is for the resource that was asked for (RFC 8707)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        assert client.client_id is not None
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32), scopes=params.scopes or [], expires_at=time.time() + 60,
            client_id=client.client_id, code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource,
        )  # fmt: skip
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state, iss=self._issuer)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        scope = " ".join(authorization_code.scopes)
        shown = token(iss=self._issuer, aud=authorization_code.resource or "nowhere", scope=scope)
        return OAuthToken(access_token=shown, expires_in=600, scope=scope)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> None:
        """None: there are no refresh tokens."""

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        raise TokenError("invalid_grant")

    async def load_access_token(self, token: str) -> None:
        """None: no resource asks this server about a token."""

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Do nothing: a token ends with its time."""


@contextmanager
def authorization_server() -> Iterator[str]:
    """The address of a server, which is the issuer of its tokens."""
    listener = socket.create_server(("127.0.0.1", 0))
    issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["tools:call"], default_scopes=["tools:call"])
    url = AuthSettings.model_validate({"issuer_url": issuer, "resource_server_url": None}).issuer_url
    routes = create_auth_routes(_Grants(issuer), url, client_registration_options=registration)
    with served_application(Starlette(routes=routes), listener):
        yield issuer
