"""The secrets that an operation needs, from its security schemes: names and ways, never values."""

from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from frontend.manifests.imported import FILL_IN
from importing.openapi.document import ApiOperation
from importing.refusal import LeftOut
from importing.words import one_line, snake

USERNAME, CLIENT_ID = f"{FILL_IN}USERNAME", f"{FILL_IN}CLIENT-ID"
_AUTHORIZATION = "Authorization"


class NeededSecret(msgspec.Struct, frozen=True):
    """One entry of a manifest's `secrets`. `shown` is for people, `note` for a reviewer."""

    name: str
    inject: dict[str, Any]
    shown: str
    note: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """`header` or `query`, and the name there in lower case."""
        name = self.inject.get("query")
        return ("header", str(self.inject.get("header", _AUTHORIZATION)).lower()) if name is None else (
            "query", str(name).lower()
        )  # fmt: skip


def secrets_of(operation: ApiOperation, server: str, owner: str, notes: list[str]) -> tuple[NeededSecret, ...]:
    """The secrets of the first alternative that can be said. `owner` begins their names: two APIs share none. Raises
    LeftOut where each alternative needs what can't be said."""
    reasons: list[str] = []
    for alternative in operation.security:
        if not isinstance(alternative, dict):
            continue
        more: list[str] = []
        try:
            secrets = tuple(
                secret
                for name, scopes in alternative.items()
                if (secret := _secret(operation, name, scopes, server, owner, more)) is not None
            )
            _refuse_one_place(secrets)
        except LeftOut as reason:
            reasons.append(str(reason))
            continue
        notes += more
        return secrets
    if reasons:
        raise LeftOut(reasons[0])
    return ()


def owner_of(prefix: str, server: str) -> str:
    """The beginning of the names of an API's secrets: the prefix, or the telling part of the host's name."""
    labels = [label for label in (urlsplit(server).hostname or "").split(".") if label not in {"api", "www"}]
    return snake(prefix) or snake(labels[0] if labels else "") or "api"


def _secret(
    operation: ApiOperation, name: str, scopes: Any, server: str, owner: str, notes: list[str]
) -> NeededSecret | None:
    if name not in operation.document.schemes:
        raise LeftOut(f"the security scheme {one_line(name, 60)}, which is not there")
    scheme = operation.document.references.followed(operation.document.schemes[name])
    secret = f"{owner}_{snake(name) or 'key'}"
    kind, place = scheme.get("type"), scheme.get("in")
    shown = one_line(scheme.get("name"), 80)
    if kind == "apiKey" and place == "header":
        return NeededSecret(secret, {"header": scheme.get("name")}, f"header {shown}")
    if kind == "apiKey" and place == "query":
        return NeededSecret(secret, {"query": scheme.get("name")}, f"query {shown}")
    if kind == "apiKey":
        raise LeftOut("a key in a cookie")
    if kind == "mutualTLS":
        notes.append("the server asks for a client certificate: name it in [[egress.networks]]")
        return None
    if kind == "http":
        return _of_header(secret, scheme.get("scheme"))
    if kind == "oauth2":
        return _of_oauth(secret, scheme, scopes, server)
    if kind == "openIdConnect":
        return _bearer(secret, "an access token of OpenID Connect: give one that lasts, or write another way")
    raise LeftOut(f"the security scheme {one_line(name, 60)}, of a type that is not known")


def _of_header(secret: str, scheme: Any) -> NeededSecret:
    kind = scheme.lower() if isinstance(scheme, str) else ""
    if kind == "bearer":
        return _bearer(secret)
    if kind == "basic":
        note = "write the user's name; the secret is the password"
        return NeededSecret(secret, {"basic": {"username": USERNAME}}, "basic password", note)
    raise LeftOut(f"authentication by {one_line(scheme, 40) or 'an unnamed scheme'}")


def _of_oauth(secret: str, scheme: dict[str, Any], scopes: Any, server: str) -> NeededSecret:
    flows = scheme.get("flows")
    flow = flows.get("clientCredentials") if isinstance(flows, dict) else None
    token_url = flow.get("tokenUrl") if isinstance(flow, dict) else None
    try:
        whole = urljoin(server + "/", token_url) if isinstance(token_url, str) else ""
    except ValueError:  # it is no address
        whole = ""
    if not whole.startswith("https://"):
        return _bearer(secret, "an access token of OAuth 2.0: give one that lasts, or write another way")
    way: dict[str, Any] = {"token_url": whole, "client_id": CLIENT_ID}
    if isinstance(scopes, list) and scopes:
        way["scopes"] = list(dict.fromkeys(one for one in scopes if isinstance(one, str)))
    note = "write the client's id; the secret is the client secret"
    return NeededSecret(secret, {"oauth2_client_credentials": way}, "OAuth2 client secret", note)


def _bearer(secret: str, note: str = "") -> NeededSecret:
    inject = {"header": _AUTHORIZATION, "format": "Bearer {value}"}
    return NeededSecret(secret, inject, f"header {_AUTHORIZATION}", note)


def _refuse_one_place(secrets: tuple[NeededSecret, ...]) -> None:
    """Raises LeftOut for two secrets in one place."""
    if len({one.place for one in secrets}) < len(secrets):
        raise LeftOut("two secrets in one place")
