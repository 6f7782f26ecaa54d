"""Leases that tests sign for themselves, as the notary does."""

from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from ipc.operations.leases import Issue
from notary.signing.keys import HeldKey
from notary.signing.leases import new_terms, sign_lease


class SignedLease(NamedTuple):
    """`expires_at` as ISO 8601, `exp` in Unix seconds."""

    token: str
    session_id: str
    lease_jti: str
    expires_at: str
    exp: int


def signed_lease(
    held: HeldKey[EllipticCurvePrivateKey], asked: Issue, *, epoch: int, now: float, ttl: int
) -> SignedLease:  # fmt: skip
    """A new session's lease, in force for `ttl` seconds from `now` (Unix seconds)."""
    terms = new_terms(asked, None, epoch=epoch, now=now, ttl=ttl)
    issued = sign_lease(held, asked, terms)
    return SignedLease(issued.lease_jwt, issued.session_id, issued.lease_jti, issued.expires_at, terms.expires_at)
