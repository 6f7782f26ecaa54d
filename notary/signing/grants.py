"""Grants: a signed word that one plan may run once, for the worker that is about to run it.

An ES256 JWS over the plan's hash (docs/decisions.md). The worker holds the public key alone, and checks plan, module,
epoch and time before it runs anything. That a grant is used once is the ledger's business.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ipc.encoding import b64url_encode
from ipc.messages import Approver, Terms
from notary.signing.keysets import public_jwk

GRANT_TYPE = "gateway-grant+jwt"
FOLLOWED_KEYS = 16
FOLLOWED_SECONDS = 120.0
"""How many keys that were followed by others still verify, and how long after the latest rotation: a grant goes to its
worker as soon as its intent is durable, or not at all."""
GRANT_MARGIN_SECONDS = 30.0
"""A grant outlives its call's deadline by this much: clocks are read twice, by two processes."""
_ALGORITHM = ECDSA(SHA256())
_encode = msgspec.json.Encoder(order="sorted").encode


class _Held(NamedTuple):
    """One key in use. `followed` are public keys of those before it."""

    key: EllipticCurvePrivateKey
    kid: str
    head: str
    followed: tuple[dict[str, str], ...]
    jwk: dict[str, str]
    jwks_json: str


def _held(key: EllipticCurvePrivateKey, followed: tuple[dict[str, str], ...]) -> _Held:
    jwk = public_jwk(key)
    head = b64url_encode(_encode({"alg": "ES256", "kid": jwk["kid"], "typ": GRANT_TYPE})) + "."
    return _Held(key, jwk["kid"], head, followed, jwk, msgspec.json.encode({"keys": [jwk, *followed]}).decode())


class GrantSigner:
    """Signs with one P-256 key, which is replaced whole (`use`)."""

    def __init__(self, key: EllipticCurvePrivateKey, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Raises KeyRefused for a key on another curve."""
        self._held = _held(key, ())
        self._monotonic = monotonic
        self._followed_until = 0.0

    def use(self, key: EllipticCurvePrivateKey) -> None:
        """Sign with this key from now on. What the one before signed verifies for as long as it may be on its way."""
        before = self._held
        self._held = _held(key, (before.jwk, *before.followed)[:FOLLOWED_KEYS])
        self._followed_until = self._monotonic() + FOLLOWED_SECONDS

    @property
    def kid(self) -> str:
        """Id of the key that signs."""
        return self._held.kid

    @property
    def jwks_json(self) -> str:
        """What verifies the grants that are on their way, as JSON text; the same object until it changes."""
        if self._held.followed and self._monotonic() >= self._followed_until:
            self._held = _held(self._held.key, ())
        return self._held.jwks_json

    def sign(self, terms: Terms, trace_id: str, grant_id: str, *, now: float, approver: Approver | None) -> str:
        """A compact JWS over the plan's hash, valid from `now` (Unix seconds) until GRANT_MARGIN_SECONDS after its
        deadline."""
        held = self._held
        claims: dict[str, Any] = {
            "grant_id": grant_id,
            "plan_hash": terms.plan_hash,
            "module_digest": terms.module_digest,
            "epoch": terms.epoch,
            "iat": int(now),
            "exp": int(now + terms.timeout_seconds + GRANT_MARGIN_SECONDS),
            "trace_id": trace_id,
        }
        if approver is not None:
            claims["approval"] = msgspec.to_builtins(approver)
        # Every call has a grant: written here in a third of the time that a JOSE library takes (RFC 7515 §3.1,
        # RFC 7518 §3.4); the tests and the worker read it with code that shares nothing with this.
        signed = held.head + b64url_encode(_encode(claims))
        r, s = decode_dss_signature(held.key.sign(signed.encode(), _ALGORITHM))
        return f"{signed}.{b64url_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
