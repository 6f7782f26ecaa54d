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

from frontend.auth.keys import PublicKey
from frontend.auth.keysets import KeySetFile
from frontend.auth.lease_keys import MAX_TTL_SECONDS, LeaseKeys
from frontend.clock import STEP_TOLERANCE_SECONDS, Clock, ClockError
from frontend.errors import GateError
from frontend.identifiers import new

ISSUER = "action-gateway"
AUDIENCE = "action-gateway"
TOKEN_TYPE = "gateway-lease+jwt"  # noqa: S105
MAX_TOKEN_CHARACTERS = 8192
CACHED_LEASES = 4096
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


def _refuse(cause: str) -> GateError:
    return GateError("invalid_lease", cause=cause)


class LeaseAuthority:
    """Issues and verifies leases. `ttl` in seconds, 1 to 3600; ValueError otherwise.

    Its keys are replaced whole (`use`). A lease that names a key which is not among them may come from another front
    that has followed a rotation already: then, and only then, the set is looked at again.
    """

    def __init__(
        self, keys: LeaseKeys | ec.EllipticCurvePrivateKey, clock: Clock, ttl: int, key_set: KeySetFile | None = None
    ) -> None:  # fmt: skip
        if not 1 <= ttl <= MAX_TTL_SECONDS:
            raise ValueError(f"a lease lives from 1 to {MAX_TTL_SECONDS} seconds")
        self._keys = keys if isinstance(keys, LeaseKeys) else LeaseKeys.alone(keys)
        self._key_set = key_set
        self._clock = clock
        self._ttl = ttl
        self._known: dict[bytes, Lease] = {}

    def use(self, keys: LeaseKeys) -> None:
        """Sign with another key, verify with another set."""
        if self._key_set is not None:
            self._key_set.look_again()
        self._replace(keys)

    def _replace(self, keys: LeaseKeys) -> None:
        self._keys = keys
        # A lease was known because a key held then; whether that key is still listed is to be asked anew.
        self._known.clear()

    @property
    def kid(self) -> str:
        """Id of the key that signs."""
        return self._keys.kid

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The keys that leases in force may be signed with, the current one first (/.well-known/jwks.json)."""
        try:
            return self._keys.jwks(self._clock.now())
        except ClockError:  # who can't tell the time takes no lease either; what there is to see stays visible
            return self._keys.jwks(0.0)

    def issue(
        self, *, principal: str, owner: str | None, scopes: tuple[str, ...], max_calls: int | None, jwk: PublicKey,
        epoch: int, identity_method: str,
    ) -> IssuedLease:  # fmt: skip
        """A new session's lease, bound to `jwk`. Raises GateError clock_error."""
        keys = self._keys
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
        token = jwt.encode(payload, keys.private, "ES256", headers={"typ": TOKEN_TYPE, "kid": keys.kid})
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
            header = jwt.get_unverified_header(token)
            if header.get("typ") != TOKEN_TYPE:
                raise _refuse("lease has another type")
            payload = jwt.decode(
                token, self._public_key(header.get("kid"), now), algorithms=["ES256"], audience=AUDIENCE,
                issuer=ISSUER, options=_OPTIONS,
            )  # fmt: skip
            claims = msgspec.convert(payload, _Claims)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError, RecursionError) as error:
            raise _refuse(f"lease does not verify: {type(error).__name__}") from None
        if claims.exp > claims.nbf + MAX_TTL_SECONDS:
            raise _refuse("lease lives longer than any lease")
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

    def _public_key(self, kid: object, now: float) -> ec.EllipticCurvePublicKey:
        """Raises GateError invalid_lease for a key that is not, or no longer, listed."""
        if not isinstance(kid, str):
            raise _refuse("lease names no key")
        key = self._keys.public_key(kid, now)
        if key is None and self._key_set is not None and (listed := self._key_set.if_changed()) is not None:
            self._replace(self._keys.verifying(listed))
            key = self._keys.public_key(kid, now)
        if key is None:
            raise _refuse("lease is signed by a key that is not listed")
        return key
