"""Leases as agents show them: short-lived tokens (JWT, ES256) bound to the key of the agent that asked for one.

Guarantees that one it verified is ours, whole and not expired. A token is verified once and then known by its hash; its
expiry is looked at every time. Whether its epoch is still in force is for the caller. Issues none: the notary signs.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from frontend.auth.keys import parse_point
from frontend.clock import STEP_TOLERANCE_SECONDS, TimeSource
from frontend.errors import GateError
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.leases import AUDIENCE, ISSUER, MAX_TTL_SECONDS, TOKEN_TYPE, Claims
from ipc.messages.notary_frames import FrontFacts, LeaseVerificationKey

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
    origin: IdentityOrigin


def _refuse(cause: str) -> GateError:
    return GateError("invalid_lease", cause=cause)


class LeaseVerifier:
    """Verifies leases with the public keys that the notary has said are in force (`use`).

    A lease that names a key which is not among them may have been signed a moment ago, by a key whose announcement has
    arrived and was not heard yet: `hear` takes what has arrived.
    """

    def __init__(self, clock: TimeSource, hear: Callable[[], None], *, max_known: int = CACHED_LEASES) -> None:
        """`max_known`: leases whose check is remembered."""
        self._clock = clock
        self._hear = hear
        self._max_known = max_known
        self._told: tuple[LeaseVerificationKey, ...] = ()
        self._public: dict[str, ec.EllipticCurvePublicKey] = {}
        self._over_at: dict[str, float | None] = {}
        self._known: dict[bytes, Lease] = {}

    def use(self, in_force: FrontFacts) -> None:
        """Verify with these keys."""
        if in_force.lease_keys == self._told:
            return
        self._told = in_force.lease_keys
        self._public = {key.kid: parse_point(key.x, key.y) for key in self._told}
        self._over_at = {key.kid: key.over_at for key in self._told}
        # A lease was known because a key was in force then; whether it still is has to be asked anew.
        self._known.clear()

    def verify(self, token: str) -> Lease:
        """The lease that `token` is. Raises GateError: invalid_lease, lease_expired or clock_error."""
        now = self._clock.now()
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii():
            raise _refuse("lease is too long or not ASCII")
        place = hashlib.sha256(token.encode()).digest()
        lease = self._known.pop(place, None)
        if lease is None:
            lease = self._verified(token, now)
        if now >= lease.exp:
            raise GateError("lease_expired")
        if len(self._known) >= self._max_known:
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
            claims = msgspec.convert(payload, Claims)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError, RecursionError) as error:
            raise _refuse(f"lease does not verify: {type(error).__name__}") from None
        if claims.exp > claims.nbf + MAX_TTL_SECONDS:
            raise _refuse("lease lives longer than any lease")
        # A clock that was set back within its tolerance must not refuse a lease that was issued a moment ago.
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
            origin=claims.origin,
        )

    def _public_key(self, kid: object, now: float) -> ec.EllipticCurvePublicKey:
        """Raises GateError invalid_lease for a key that is not, or no longer, in force."""
        if not isinstance(kid, str):
            raise _refuse("lease names no key")
        if kid not in self._public:
            self._hear()
        key, over_at = self._public.get(kid), self._over_at.get(kid)
        if key is None or (over_at is not None and over_at <= now):
            raise _refuse("lease is signed by a key that is not in force")
        return key
