"""Leases as they are signed: short-lived tokens (JWT, ES256), each bound to the key of the agent that asked for it.

Whether a lease holds is the front's to check (frontend/auth/lease.py), with the public keys alone.
"""

from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from ipc.clock import iso, parse_iso
from ipc.identifiers import new
from ipc.leases import AUDIENCE, ISSUER, LEASE_KEY_KEPT_SECONDS, TOKEN_TYPE, Budgets, Claims, Confirmation
from ipc.messages import Issue, LeaseKey
from notary.signing.keys import HeldKey


class SignedLease(msgspec.Struct, frozen=True):
    """What was signed. `expires_at` as ISO 8601, `exp` in Unix seconds."""

    token: str
    session_id: str
    lease_jti: str
    expires_at: str
    exp: int


def sign_lease(
    held: HeldKey[EllipticCurvePrivateKey], asked: Issue, *, epoch: int, now: float, ttl: int
) -> SignedLease:  # fmt: skip
    """A new session's lease, in force for `ttl` seconds from `now` (Unix seconds)."""
    issued = int(now)
    claims = Claims(
        iss=ISSUER,
        aud=AUDIENCE,
        sub=asked.principal,
        iat=issued,
        nbf=issued,
        exp=issued + ttl,
        jti=new("lea_"),
        session_id=new("ses_"),
        scope=asked.scopes,
        cnf=Confirmation(asked.jkt),
        epoch=epoch,
        identity_method=asked.identity_method,
        budgets=None if asked.max_calls is None else Budgets(asked.max_calls),
        owner=asked.owner,
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    token = jwt.encode(payload, held.private, "ES256", headers={"typ": TOKEN_TYPE, "kid": held.kid})
    return SignedLease(token, claims.session_id, claims.jti, iso(claims.exp), claims.exp)


def lease_keys(held: HeldKey[EllipticCurvePrivateKey]) -> tuple[LeaseKey, ...]:
    """What fronts verify leases with, the key that signs first."""
    keys = []
    for one in held.listed:
        over_at = None if one.retired_at is None else parse_iso(one.retired_at) + LEASE_KEY_KEPT_SECONDS
        keys.append(LeaseKey(one.kid, one.jwk["x"], one.jwk["y"], over_at))
    return tuple(sorted(keys, key=lambda key: key.kid != held.kid))
