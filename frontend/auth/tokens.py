"""Tokens (JWT) of configured issuers, by which agents beyond this host ask for leases.

Guarantees that a token counts only with a signature by a key of the issuer that it names, in an algorithm that the
issuer's row allows, for an audience of that row, within its times, and that its principal is one which no other row
and no user of this host has unless the configuration says so by name. No word of a token reaches a log or a refusal.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Final

import jwt
import msgspec

from frontend.auth.fetched_keys import FetchedKeys, KeyBroker
from frontend.auth.formed import spelled, why_not_formed
from frontend.auth.identity import Identity
from frontend.auth.jwks import KeyFile, KeySource, key_for
from frontend.clock import TimeSource
from frontend.errors import GateError
from ipc.configuration.identity_origin import BEARER, DPOP
from ipc.configuration.issuers import MAX_NAME, IssuerSettings
from ipc.settings import IdentitySettings

MAX_TOKEN_CHARACTERS: Final = 16_384
LEEWAY_SECONDS: Final = 30
"""For the clock of an issuer that is ahead: on `nbf` and `iat`. A token that has ended has ended."""
JWT: Final = "jwt"
"""`identity_method` of these identities."""
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]{2,2048}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,1024}", re.ASCII)
_SUBJECT: Final = re.compile(rf"[!-~]{{1,{MAX_NAME}}}", re.ASCII)
_BY_HAND: Final[Any] = {
    "verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_sub": False, "verify_jti": False,
    "require": ["exp", "iss", "aud", "sub"],
}  # fmt: skip
"""Times are ours to check: PyJWT would ask the wall clock, behind the back of frontend/clock.py."""


class TokenHeader(msgspec.Struct, frozen=True):
    """The fields of a token's header that count."""

    alg: str
    kid: str | None = None


class ConfirmedKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The claim `cnf` of a token that is bound by DPoP."""

    jkt: str


class IssuerClaim(msgspec.Struct, frozen=True):
    """The claim by which the row is found."""

    iss: str


def _refuse(cause: str) -> GateError:
    return GateError("identity_forbidden", cause=cause, message="this token gives no identity here")


class TokenJudge:
    """Judges tokens by the rows of the configuration in force. Remembers no token: each is judged anew."""

    def __init__(self, clock: TimeSource, settings: Callable[[], IdentitySettings], broker: KeyBroker) -> None:
        self._clock = clock
        self._settings = settings
        self._broker = broker
        self._sources: dict[str, KeySource] = {}
        """By name of the row."""

    async def judge(self, token: str) -> Identity:
        """The identity of the caller that shows this token.

        Raises GateError: identity_forbidden, identity_provider_unavailable where the issuer's keys are missing,
        clock_error.
        """
        if len(token) > MAX_TOKEN_CHARACTERS or _COMPACT.fullmatch(token) is None:
            raise _refuse("the token is no signed JWT of a bounded size")
        header, row = self._header(token)
        if header.alg not in row.algorithms:
            raise _refuse(f"the token is signed in an algorithm that issuer {row.name} may not use")
        keys = await self._source(row).fitting(header.kid, header.alg)
        now = self._clock.now()
        key = key_for(keys, header.kid, header.alg)
        if key is None:
            raise _refuse(f"no key of issuer {row.name} verifies the token")
        claims = _verified(token, key, header.alg, row)
        expires = _check_times(claims, now, row)
        _check_required(claims, row)
        subject = claims["sub"]
        if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
            raise _refuse(f"the token of issuer {row.name} has a subject that can't be used")
        return self._identity(row, subject, claims, expires)

    def _source(self, row: IssuerSettings) -> KeySource:
        source = self._sources.get(row.name)
        if source is None:
            if row.jwks_url is not None:
                source = FetchedKeys(self._broker, row.name, row.jwks_url)
            else:
                source = KeyFile(row.jwks_file or "")
            self._sources[row.name] = source
        return source

    def _header(self, token: str) -> tuple[TokenHeader, IssuerSettings]:
        """The header of a token that nothing has verified yet, and the row of the issuer that it names."""
        payload = token.split(".")[1]
        try:
            fields = jwt.get_unverified_header(token)
            header = msgspec.convert(fields, TokenHeader)
            issued = msgspec.json.decode(jwt.utils.base64url_decode(payload), type=IssuerClaim)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise _refuse("the token can't be read") from None
        # SECURITY: an extension that we do not know could change what the signature means.
        if "crit" in fields or "b64" in fields or "enc" in fields:
            raise _refuse("the token needs an extension")
        row = next((one for one in self._settings().issuers if one.issuer == issued.iss), None)
        if row is None:
            raise _refuse("the token is of no configured issuer")
        return header, row

    def _identity(self, row: IssuerSettings, subject: str, claims: dict[str, Any], expires: float) -> Identity:
        if row.principals:
            mapping = row.principals.get(subject)
            if mapping is None:
                raise _refuse(f"a subject of issuer {row.name} has no mapping")
            scopes = row.scopes if mapping.scopes is None else mapping.scopes
            owner = row.owner if mapping.owner is None else mapping.owner
            principal = mapping.principal
        else:
            principal, scopes, owner = self._formed(row, claims), row.scopes, row.owner
        jkt = _bound_key(claims, row)
        binding = BEARER if jkt is None else DPOP
        return Identity(principal, scopes, owner, JWT, row.issuer, subject, math.floor(expires), binding, jkt)

    def _formed(self, row: IssuerSettings, claims: dict[str, Any]) -> str:
        """The principal that the row's form makes of the token."""
        head, _, claim = row.principal.rstrip("}").partition("{")
        value = claims.get(claim)
        text = spelled(value) if isinstance(value, str) else None
        if text is None:
            raise _refuse(f"the token of issuer {row.name} makes no principal")
        principal = f"{head}{text}"
        if (why := why_not_formed(principal, self._settings())) is not None:
            raise _refuse(f"the token of issuer {row.name} {why}")
        return principal


def _bound_key(claims: dict[str, Any], row: IssuerSettings) -> str | None:
    """The thumbprint of the key that a token is bound to (RFC 9449); None for a bearer token."""
    if "cnf" not in claims:
        return None
    try:
        return msgspec.convert(claims["cnf"], ConfirmedKey).jkt
    except msgspec.ValidationError:
        # SECURITY: such a token must not count without a proof, and none of another kind can be shown here.
        raise _refuse(f"the token of issuer {row.name} is bound in a way that can't be proven here") from None


def _verified(token: str, key: Any, algorithm: str, row: IssuerSettings) -> dict[str, Any]:
    """The claims of a token whose signature, issuer and audience hold."""
    try:
        return jwt.decode(
            token, key, algorithms=[algorithm], audience=row.audience, issuer=row.issuer, options=_BY_HAND
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise _refuse(f"the token of issuer {row.name} does not verify: {type(error).__name__}") from None


def _check_times(claims: dict[str, Any], now: float, row: IssuerSettings) -> float:
    """The end of the token, in Unix seconds."""
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    if not all(type(time) in (int, float) and 0 <= time < 2**53 for time in times.values()):
        raise _refuse(f"the token of issuer {row.name} has a time that is none")
    if math.floor(times["exp"]) <= now:
        raise _refuse(f"the token of issuer {row.name} has ended")
    if max(times.get("nbf", 0), times.get("iat", 0)) > now + LEEWAY_SECONDS:
        raise _refuse(f"the token of issuer {row.name} is not valid yet")
    return float(times["exp"])


def _check_required(claims: dict[str, Any], row: IssuerSettings) -> None:
    for name, wanted in row.require.items():
        value = claims.get(name)
        held = value if isinstance(value, list) else [value]
        # True equals 1: a claim has the type that the row says, too.
        if not any(type(one) is type(wanted) and one == wanted for one in held):
            raise _refuse(f"the token of issuer {row.name} lacks what its row requires")
