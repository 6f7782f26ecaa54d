"""Access tokens of clients of `/mcp`: the part of a token that the edge itself looks at.

SECURITY: nothing here verifies a signature, and each rule only refuses more. A token counts once the gateway has given
a lease for these very characters. No word of a token or a proof reaches a log or an answer.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

SCOPE: Final = "tools:call"
MAX_TOKEN: Final = 16_384
"""Characters, as the gateway has it."""
MAX_PROOF: Final = 4096
_PROOF: Final = re.compile(rf"[!-~]{{1,{MAX_PROOF}}}")
_TOKEN: Final = re.compile(rf"[!-~]{{1,{MAX_TOKEN}}}")


class AccessRefused(Exception):
    """A token that gives no access: status, error code of RFC 6750 or RFC 9449, and the rule as a text. `needs_proof`:
    the client has to show the token with a proof."""

    def __init__(self, status: int, error: str | None, rule: str, *, needs_proof: bool = False) -> None:
        super().__init__(rule)
        self.status = status
        self.error = error
        self.rule = rule
        self.needs_proof = needs_proof


class ShownToken(NamedTuple):
    """The token of a request; `proof` is the one that came with it, None for a bearer token."""

    token: str
    proof: str | None


class AccessClaims(msgspec.Struct, frozen=True):
    """The claims that count here."""

    iss: str
    sub: str
    exp: float
    aud: str | list[str]
    scope: str = ""
    scp: str | list[str] = ""
    """Scopes, by the name that some issuers give them."""
    cnf: Any = None
    """The key that the token is bound to."""

    @property
    def scopes(self) -> list[str]:
        """All scopes."""
        return [*self.scope.split(" "), *(self.scp.split(" ") if isinstance(self.scp, str) else self.scp)]


def shown_token(headers: Iterable[tuple[bytes, bytes]]) -> ShownToken:
    """The one token of a request, and the one proof of a token that is shown as bound. Raises AccessRefused."""
    given = [(name.lower(), value.decode("latin-1")) for name, value in headers]
    shown = [value.partition(" ") for name, value in given if name == b"authorization"]
    if not shown:
        raise AccessRefused(401, None, "an access token is needed")
    scheme = shown[0][0].lower()
    if len(shown) != 1 or scheme not in ("bearer", "dpop"):
        raise AccessRefused(401, "invalid_token", "one token is needed, as Authorization: Bearer or DPoP")
    token = shown[0][2].strip(" ")
    if scheme == "bearer":
        return ShownToken(token, None)
    proofs = [value for name, value in given if name == b"dpop"]
    if len(proofs) != 1 or _PROOF.fullmatch(proofs[0]) is None:
        raise AccessRefused(401, "invalid_dpop_proof", "one proof is needed, as DPoP", needs_proof=True)
    return ShownToken(token, proofs[0])


def checked_claims(shown: ShownToken, resource: str) -> AccessClaims:
    """The claims of a token that is for this resource, and shown as what it is. Raises AccessRefused."""
    parts = shown.token.split(".")
    if _TOKEN.fullmatch(shown.token) is None or len(parts) != 3:
        raise AccessRefused(401, "invalid_token", "the token is not a signed JWT")
    try:
        payload = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        claims = msgspec.json.decode(payload, type=AccessClaims)
    except (binascii.Error, ValueError, RecursionError):
        raise AccessRefused(401, "invalid_token", "the token lacks claims that are needed") from None
    if resource not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
        raise AccessRefused(401, "invalid_token", "the token is for another resource")
    if claims.cnf is not None and shown.proof is None:
        raise AccessRefused(401, "invalid_token", "the token is bound to a key: show it with a proof", needs_proof=True)
    if claims.cnf is None and shown.proof is not None:
        raise AccessRefused(401, "invalid_token", "the token is bound to no key: show it as Authorization: Bearer")
    if SCOPE not in claims.scopes:
        raise AccessRefused(403, "insufficient_scope", f"the token lacks the scope {SCOPE}")
    return claims
