"""Leases: short-lived tokens (JWT, ES256) bound to the key of the agent that asked for one.

Guarantees that every lease is bound to a valid key, and that one it verified is ours, whole and not expired. A token is
verified once and then known by its hash; its expiry is looked at every time. Whether its epoch is still in force is
for the caller, who asks the store. Never decides what a principal may do.
"""

import hashlib
import re
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from frontend.auth.identity import is_scope
from frontend.auth.keys import KeyRefused, PublicKey, parse_jwk, public_key_of
from frontend.clock import STEP_TOLERANCE_SECONDS, Clock
from frontend.errors import GateError
from frontend.identifiers import new

ISSUER = "action-gateway"
AUDIENCE = "action-gateway"
TOKEN_TYPE = "gateway-lease+jwt"  # noqa: S105
MAX_TTL_SECONDS = 3600
MAX_TOKEN_CHARACTERS = 8192
CACHED_LEASES = 4096
MAX_SCOPES = 32
MAX_CALLS = 2**31 - 1
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{86}", re.ASCII)
_OPTIONS: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
"""Times are ours to check: PyJWT would ask the wall clock, behind the back of frontend/clock.py."""


class Lease(msgspec.Struct, frozen=True):
    """A lease that holds. `exp` in Unix seconds; `jkt` is the thumbprint of the key that must sign the proofs."""

    session_id: str
    principal: str
    owner: str | None
    scopes: tuple[str, ...]
    jti: str
    jkt: str
    epoch: int
    exp: int
    has_budget: bool
    identity_method: str


class LeaseRequest(msgspec.Struct, frozen=True):
    """A request for a lease, every part checked. `max_calls` None: no budget."""

    scopes: tuple[str, ...]
    jwk: PublicKey
    max_calls: int | None


class IssuedLease(msgspec.Struct, frozen=True):
    """What `issue` made. `expires_at` as ISO 8601, `expires_at_seconds` as Unix time."""

    lease_jwt: str
    session_id: str
    lease_jti: str
    expires_at: str
    expires_at_seconds: int


class _Confirmation(msgspec.Struct, frozen=True):
    jkt: str


class _Budgets(msgspec.Struct, frozen=True):
    max_calls: int


class _Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    iss: str
    aud: str
    sub: str
    iat: int
    nbf: int
    exp: int
    jti: str
    session_id: str
    scope: tuple[str, ...]
    cnf: _Confirmation
    epoch: int
    identity_method: str
    budgets: _Budgets | None = None
    owner: str | None = None


def _bad_request(message: str) -> GateError:
    return GateError("invalid_request", message=message)


def _scopes(value: object) -> tuple[str, ...]:
    if type(value) is not list or not 1 <= len(value) <= MAX_SCOPES:
        raise _bad_request(f"scopes: must be an array of 1 to {MAX_SCOPES} strings")
    for place, scope in enumerate(value):
        if not is_scope(scope):
            raise _bad_request(f"scopes[{place}]: must be 4 to 64 of a-z 0-9 : _ - with a colon, like tools:call")
    return tuple(value)


def _max_calls(budgets: object) -> int | None:
    if budgets is None:
        return None
    if type(budgets) is not dict:
        raise _bad_request("budgets: must be an object")
    value = budgets.get("max_calls")
    if value is None:
        return None
    if type(value) is not int or not 1 <= value <= MAX_CALLS:
        raise _bad_request(f"budgets.max_calls: must be an integer from 1 to {MAX_CALLS}")
    return value


def parse_lease_request(body: object) -> LeaseRequest:
    """The body of POST /v1/leases, decoded from JSON. Unknown members and unknown budgets are ignored.

    Raises GateError invalid_request whose `message` names the field and never repeats its value.
    """
    if type(body) is not dict:
        raise _bad_request("the body must be an object with scopes and dpop_jwk")
    scopes = _scopes(body.get("scopes"))
    try:
        key = parse_jwk(body.get("dpop_jwk"))
    except KeyRefused as error:
        name = f"dpop_jwk.{error.member}" if error.member else "dpop_jwk"
        raise _bad_request(f"{name}: {error.problem}") from None
    return LeaseRequest(scopes, key, _max_calls(body.get("budgets")))


def _refuse(cause: str) -> GateError:
    return GateError("invalid_lease", cause=cause)


class LeaseAuthority:
    """Issues and verifies leases with one P-256 key. `ttl` in seconds, 1 to 3600; ValueError otherwise."""

    def __init__(self, signing_key: ec.EllipticCurvePrivateKey, clock: Clock, ttl: int) -> None:
        if not 1 <= ttl <= MAX_TTL_SECONDS:
            raise ValueError(f"a lease lives from 1 to {MAX_TTL_SECONDS} seconds")
        self._key = signing_key
        self._public = signing_key.public_key()
        self._named = public_key_of(signing_key)
        self._clock = clock
        self._ttl = ttl
        self._known: dict[bytes, Lease] = {}

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The set of keys that leases are signed with, for /.well-known/jwks.json."""
        return {"keys": [{**self._named.jwk(), "kid": self._named.jkt, "use": "sig", "alg": "ES256"}]}

    def issue(
        self, *, principal: str, owner: str | None, scopes: tuple[str, ...], max_calls: int | None, jwk: PublicKey,
        epoch: int, identity_method: str,
    ) -> IssuedLease:  # fmt: skip
        """A new session's lease, bound to `jwk`. Raises GateError clock_error."""
        issued = int(self._clock.now())
        claims = _Claims(
            iss=ISSUER,
            aud=AUDIENCE,
            sub=principal,
            iat=issued,
            nbf=issued,
            exp=issued + self._ttl,
            jti=new("lea_"),
            session_id=new("ses_"),
            scope=scopes,
            cnf=_Confirmation(jwk.jkt),
            epoch=epoch,
            identity_method=identity_method,
            budgets=None if max_calls is None else _Budgets(max_calls),
            owner=owner,
        )
        payload: dict[str, Any] = msgspec.to_builtins(claims)
        token = jwt.encode(payload, self._key, "ES256", headers={"typ": TOKEN_TYPE, "kid": self._named.jkt})
        return IssuedLease(token, claims.session_id, claims.jti, self._clock.iso(claims.exp), claims.exp)

    def verify(self, token: str) -> Lease:
        """The lease that `token` is. Raises GateError: invalid_lease, lease_expired or clock_error."""
        now = self._clock.now()
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii():
            raise _refuse("lease is too long or not ASCII")
        place = hashlib.sha256(token.encode("ascii")).digest()
        lease = self._known.pop(place, None)
        if lease is None:
            lease = self._verified(token, now)
        if now >= lease.exp:
            raise GateError("lease_expired")
        if len(self._known) >= CACHED_LEASES:
            del self._known[next(iter(self._known))]
        self._known[place] = lease
        return lease

    def _verified(self, token: str, now: float) -> Lease:
        """All of the check but the expiry: a token that was not ours is invalid, however old."""
        if _COMPACT.fullmatch(token) is None:
            raise _refuse("lease is not a compact JWS")
        try:
            found = jwt.decode_complete(
                token, self._public, algorithms=["ES256"], audience=AUDIENCE, issuer=ISSUER, options=_OPTIONS
            )
            header = found["header"]
            if header.get("typ") != TOKEN_TYPE or header.get("kid") != self._named.jkt:
                raise _refuse("lease has another type or key id")
            claims = msgspec.convert(found["payload"], _Claims)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError, RecursionError) as error:
            raise _refuse(f"lease does not verify: {type(error).__name__}") from None
        # A clock that was set back within its tolerance must not refuse what it issued a moment ago.
        if now + STEP_TOLERANCE_SECONDS < claims.nbf:
            raise _refuse("lease is not valid yet")
        return Lease(
            session_id=claims.session_id,
            principal=claims.sub,
            owner=claims.owner,
            scopes=claims.scope,
            jti=claims.jti,
            jkt=claims.cnf.jkt,
            epoch=claims.epoch,
            exp=claims.exp,
            has_budget=claims.budgets is not None,
            identity_method=claims.identity_method,
        )
