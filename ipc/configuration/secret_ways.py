"""The ways in which a secret goes with a request: one record each, its form in a plan and how it is written and shown.

A new way is a class here, its fields in frontend/manifests/secret_ways.py and its row in docs/manifests.md. Each is
written as a header or as a parameter of the query, from a value that the worker has for one call and looks for in each
answer. No record holds a value.
"""

import base64
from typing import Final
from urllib.parse import quote

import msgspec

AUTHORIZATION: Final = "Authorization"


class SecretWay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="way"):
    """A place of a request and the text that stands there."""

    @property
    def member(self) -> str:
        """The member of a manifest's `inject` that declares it."""
        return str(self.__struct_config__.tag)

    @property
    def header_name(self) -> str | None:
        """The header that has the value, if one has it."""
        return None

    @property
    def parameter_name(self) -> str | None:
        """The parameter of the query that has the value, if one has it."""
        return None

    @property
    def shown(self) -> str:
        """The way as an operator reads it: `as header Authorization`."""
        raise NotImplementedError

    def text(self, value: str) -> str:
        """The text that is sent for a value."""
        raise NotImplementedError

    def named(self, secret: str) -> str:
        """The same text for people, with the name of the secret in the place of its value."""
        return self.text(f"<secret {secret}>")


class AsHeader(SecretWay, frozen=True, forbid_unknown_fields=True, tag="header"):
    """A header, in which `{value}` of the format is replaced."""

    header: str
    format: str = "{value}"

    @property
    def header_name(self) -> str:
        """The header of the manifest."""
        return self.header

    @property
    def shown(self) -> str:
        """The header by its name."""
        return f"as header {self.header}"

    def text(self, value: str) -> str:
        """The format with the value in it."""
        return self.format.replace("{value}", value)


class AsParameter(SecretWay, frozen=True, forbid_unknown_fields=True, tag="query"):
    """A parameter at the end of the query. No plan, observation or log has the address with it."""

    parameter: str

    @property
    def parameter_name(self) -> str:
        """The parameter of the manifest."""
        return self.parameter

    @property
    def shown(self) -> str:
        """The parameter by its name."""
        return f"as query parameter {self.parameter}"

    def text(self, value: str) -> str:
        """The parameter with its value, percent-encoded."""
        return f"{quote(self.parameter, safe='')}={quote(value, safe='')}"

    def named(self, secret: str) -> str:
        """The parameter with the name of the secret, not encoded."""
        return f"{quote(self.parameter, safe='')}=<secret {secret}>"


class AsPassword(SecretWay, frozen=True, forbid_unknown_fields=True, tag="basic"):
    """The password of a user, by Basic authentication (RFC 7617)."""

    username: str

    @property
    def header_name(self) -> str:
        """The header of credentials."""
        return AUTHORIZATION

    @property
    def shown(self) -> str:
        """The user by name."""
        return f"as basic user {self.username}"

    def text(self, value: str) -> str:
        """User and password in base64."""
        return "Basic " + base64.b64encode(f"{self.username}:{value}".encode()).decode()

    def named(self, secret: str) -> str:
        """User and name of the secret, not encoded."""
        return f"Basic {self.username}:<secret {secret}>"


class AsToken(SecretWay, frozen=True, forbid_unknown_fields=True, tag="oauth2_client_credentials"):
    """An access token (RFC 6749 §4.4). The secret's value is the client's; a worker has the token in its place."""

    token_url: str
    client_id: str
    scopes: tuple[str, ...] = ()
    audience: str | None = None

    @property
    def header_name(self) -> str:
        """The header of credentials."""
        return AUTHORIZATION

    @property
    def shown(self) -> str:
        """The server that gives the token, without its query."""
        return f"as a token of {self.token_url.partition('?')[0]}"

    def text(self, value: str) -> str:
        """The token as RFC 6750 writes it."""
        return f"Bearer {value}"

    def named(self, secret: str) -> str:
        """The token by the secret that it is fetched with."""
        return f"Bearer <token by secret {secret}>"


AnySecretWay = AsHeader | AsParameter | AsPassword | AsToken
