"""The claims of a lease, as the notary signs them and fronts read them.

Their meaning stands in docs/decisions/identity.md, "Leases, identity, scopes".
"""

from typing import Final

import msgspec

from ipc.configuration.identity_origin import IdentityOrigin

ISSUER: Final = "action-gateway"
AUDIENCE: Final = "action-gateway"
TOKEN_TYPE: Final = "gateway-lease+jwt"  # noqa: S105
MAX_TTL_SECONDS: Final = 3600
"""No lease lives longer."""
LEASE_KEY_KEPT_SECONDS: Final = MAX_TTL_SECONDS + 300
"""How long a key verifies after another followed: the longest lease, and a process that was slow to follow."""


class Confirmation(msgspec.Struct, frozen=True):
    """The key that a lease is bound to, by its thumbprint (RFC 9449 §6.1)."""

    jkt: str


class LeaseBudgets(msgspec.Struct, frozen=True):
    """The budget of a lease."""

    max_calls: int


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The payload."""

    iss: str
    aud: str
    sub: str
    iat: int
    nbf: int
    exp: int
    jti: str
    session_id: str
    scope: tuple[str, ...]
    cnf: Confirmation
    epoch: int
    identity_method: str
    budgets: LeaseBudgets | None = None
    owner: str | None = None
    identity_issuer: str | None = None
    """The issuer of the token by which the caller is known."""
    identity_subject: str | None = None
    """The subject of that token, or the name of the caller's certificate."""
    token_binding: str | None = None
    """`dpop` if that token is bound to the key of this lease, else `bearer`."""

    @property
    def origin(self) -> IdentityOrigin:
        """The origin of the caller's identity."""
        return IdentityOrigin(self.identity_method, self.identity_issuer, self.identity_subject, self.token_binding)
