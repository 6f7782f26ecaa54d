"""Settings of `[[identity.issuers]]`: issuers of tokens by which agents beyond this host ask for leases."""

from typing import Final

import msgspec

ALGORITHMS: Final = ("ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""Signatures that a row may allow: none of them has a secret that the verifier knows, too."""
MAX_NAME: Final = 512
"""Characters of an issuer and of a subject: both stand in leases and in evidence."""


class SubjectMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The principal of one subject; owner and scopes are those of the issuer's row where they are not named here."""

    principal: str
    scopes: tuple[str, ...] | None = None
    owner: str | None = None


class IssuerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[identity.issuers]]`: one issuer, its keys, and the principals of its subjects."""

    name: str
    """For logs and problems."""
    issuer: str
    """The claim `iss`, character by character."""
    audience: tuple[str, ...]
    """The claim `aud` holds one of them."""
    algorithms: tuple[str, ...]
    jwks_file: str | None = None
    """The issuer's public keys, a JWK set (RFC 7517). Either this or `jwks_url`."""
    jwks_url: str | None = None
    """The address from which the broker fetches them."""
    principal: str = "{sub}"
    """The principal of a subject; the claim in braces is replaced by its value. Not read with `principals`."""
    scopes: tuple[str, ...] = ("tools:call",)
    owner: str | None = None
    require: dict[str, str | bool] = {}
    """Claim -> the value that it must have, or hold where it is an array."""
    principals: dict[str, SubjectMapping] = {}
    """Subject -> mapping; where there is one, every other subject is refused."""

    @property
    def named_principals(self) -> tuple[str, ...]:
        """The principals that this row names outright."""
        return tuple(one.principal for one in self.principals.values())
