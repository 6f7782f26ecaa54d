"""Access tokens of clients of `/mcp`: the part of a token that the edge itself looks at.

SECURITY: nothing here verifies a signature, and each rule only refuses more. A token counts once the gateway has given
a lease for these very characters. No word of a token reaches a log or an answer.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

import msgspec

SCOPE: Final = "tools:call"
MAX_TOKEN: Final = 16_384
"""Characters, as the gateway has it."""
_TOKEN: Final = re.compile(rf"[!-~]{{1,{MAX_TOKEN}}}")


class AccessRefused(Exception):
    """A token that gives no access: status, error code of RFC 6750, and the rule as a text."""

    def __init__(self, status: int, error: str | None, rule: str) -> None:
        super().__init__(rule)
        self.status = status
        self.error = error
        self.rule = rule


class AccessClaims(msgspec.Struct, frozen=True):
    """The claims that count here."""

    iss: str
    sub: str
    exp: float
    aud: str | list[str]
    scope: str = ""
    scp: str | list[str] = ""
    """Scopes, by the name that some issuers give them."""
    cnf: msgspec.Raw | None = None
    """The key that the token is bound to."""

    @property
    def scopes(self) -> list[str]:
        """All scopes."""
        return [*self.scope.split(" "), *(self.scp.split(" ") if isinstance(self.scp, str) else self.scp)]


def shown_token(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The one token of a request. Raises AccessRefused."""
    shown = [value.decode("latin-1").partition(" ") for name, value in headers if name.lower() == b"authorization"]
    if not shown:
        raise AccessRefused(401, None, "an access token is needed")
    if len(shown) != 1 or shown[0][0].lower() != "bearer":
        raise AccessRefused(401, "invalid_token", "one token is needed, as Authorization: Bearer")
    return shown[0][2].strip(" ")


def checked_claims(token: str, resource: str) -> AccessClaims:
    """The claims of a token that is for this resource. Raises AccessRefused."""
    parts = token.split(".")
    if _TOKEN.fullmatch(token) is None or len(parts) != 3:
        raise AccessRefused(401, "invalid_token", "the token is not a signed JWT")
    try:
        payload = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        claims = msgspec.json.decode(payload, type=AccessClaims)
    except (binascii.Error, ValueError, RecursionError):
        raise AccessRefused(401, "invalid_token", "the token lacks claims that are needed") from None
    if resource not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
        raise AccessRefused(401, "invalid_token", "the token is for another resource")
    if claims.cnf is not None:
        raise AccessRefused(401, "invalid_token", "the token is bound to a key, which can't be proven here")
    if SCOPE not in claims.scopes:
        raise AccessRefused(403, "insufficient_scope", f"the token lacks the scope {SCOPE}")
    return claims
