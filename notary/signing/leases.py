"""Leases as they are signed: short-lived tokens (JWT, ES256), each bound to the key of the agent that asked for it.

Whether a lease holds is the front's to check (frontend/auth/lease.py), with the public keys alone.
"""

import hashlib
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from ipc.leases import AUDIENCE, ISSUER, LEASE_KEY_KEPT_SECONDS, TOKEN_TYPE, Claims, Confirmation, LeaseBudgets
from ipc.messages.notary_frames import LeaseVerificationKey
from ipc.operations.leases import Issue, SignedLease
from ipc.process.clock import iso, parse_iso
from ipc.texts.identifiers import new
from notary.signing.keys import HeldKey


class RememberedLease(msgspec.Struct, frozen=True, tag=True):
    """The fields that the notary adds to the request for a lease. Together with that request and the key they make the
    same lease again; alone they are worth nothing. Times in Unix seconds."""

    session_id: str
    lease_jti: str
    issued_at: int
    expires_at: int
    epoch: int
    request: bytes
    """Digest of the request."""


def new_terms(asked: Issue, session_id: str | None, *, epoch: int, now: float, ttl: int) -> RememberedLease:
    """Terms of a lease in force for `ttl` seconds from `now` (Unix seconds), but no longer than its caller's token.
    `session_id` None begins a new session."""
    expires = end_of(asked, now, ttl)
    return RememberedLease(session_id or new("ses_"), new("lea_"), int(now), expires, epoch, digest_of(asked))


def end_of(asked: Issue, now: float, ttl: int) -> int:
    """The end of a lease that is asked for now, in Unix seconds."""
    longest = int(now) + ttl
    return longest if asked.ends_at is None else min(longest, asked.ends_at)


def digest_of(asked: Issue) -> bytes:
    """Tells one request from another."""
    return hashlib.sha256(msgspec.msgpack.encode(asked)).digest()


def sign_lease(held: HeldKey[EllipticCurvePrivateKey], asked: Issue, terms: RememberedLease) -> SignedLease:
    """The lease of these terms, signed with the key in force."""
    claims = Claims(
        iss=ISSUER,
        aud=AUDIENCE,
        sub=asked.principal,
        iat=terms.issued_at,
        nbf=terms.issued_at,
        exp=terms.expires_at,
        jti=terms.lease_jti,
        session_id=terms.session_id,
        scope=asked.scopes,
        cnf=Confirmation(asked.jkt),
        epoch=terms.epoch,
        identity_method=asked.identity_method,
        budgets=None if asked.max_calls is None else LeaseBudgets(asked.max_calls),
        owner=asked.owner,
        identity_issuer=asked.event.identity_issuer,
        identity_subject=asked.event.identity_subject,
        token_binding=asked.event.token_binding,
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    token = jwt.encode(payload, held.private, "ES256", headers={"typ": TOKEN_TYPE, "kid": held.kid})
    return SignedLease(token, terms.session_id, terms.lease_jti, iso(terms.expires_at))


def lease_keys(held: HeldKey[EllipticCurvePrivateKey]) -> tuple[LeaseVerificationKey, ...]:
    """Public keys for verifying leases, the key that signs first."""
    keys = []
    for one in held.listed:
        over_at = None if one.retired_at is None else parse_iso(one.retired_at) + LEASE_KEY_KEPT_SECONDS
        keys.append(LeaseVerificationKey(one.kid, one.jwk["x"], one.jwk["y"], over_at))
    return tuple(sorted(keys, key=lambda key: key.kid != held.kid))
