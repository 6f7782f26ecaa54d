"""Grants: signed evidence that one plan was allowed to run once, kept with its intent.

An ES256 JWS over the plan's hash. A worker runs a plan on the notary's word over a channel of their
own and reads no grant; a holder of the public key can check afterwards what was allowed, and until when.
"""

from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ipc.operations.calls import Approver, GrantTerms
from ipc.texts.encoding import b64url_encode
from notary.signing.keysets import public_jwk

GRANT_TYPE = "gateway-grant+jwt"
GRANT_MARGIN_SECONDS = 30.0
"""A grant outlives its call's deadline by this much: clocks are read twice, by two processes."""
_ALGORITHM = ECDSA(SHA256())
_encode = msgspec.json.Encoder(order="sorted").encode


class _Held(NamedTuple):
    """The key in use. `head` is the encoded header of everything that it signs."""

    key: EllipticCurvePrivateKey
    jwk: dict[str, str]
    head: str


def _held(key: EllipticCurvePrivateKey) -> _Held:
    jwk = public_jwk(key)
    return _Held(key, jwk, b64url_encode(_encode({"alg": "ES256", "kid": jwk["kid"], "typ": GRANT_TYPE})) + ".")


class GrantSigner:
    """Signs with one P-256 key, which is replaced whole (`use`)."""

    def __init__(self, key: EllipticCurvePrivateKey) -> None:
        """Raises KeyRefused for a key on another curve."""
        self._held = _held(key)

    def use(self, key: EllipticCurvePrivateKey) -> None:
        """Sign with this key from now on."""
        self._held = _held(key)

    @property
    def kid(self) -> str:
        """Id of the key that signs."""
        return self._held.jwk["kid"]

    @property
    def jwk(self) -> dict[str, str]:
        """The public key of the grants that are signed now (RFC 7517)."""
        return self._held.jwk

    def sign(self, terms: GrantTerms, trace_id: str, grant_id: str, *, now: float, approver: Approver | None) -> str:
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
            # The operator's signature is in the event of the decision and in the receipt.
            claims["approval"] = msgspec.to_builtins(approver.unsigned)
        # Every call has a grant: written here in a third of the time that a JOSE library takes (RFC 7515 §3.1,
        # RFC 7518 §3.4); the tests read it with code that shares nothing with this.
        signed = held.head + b64url_encode(_encode(claims))
        r, s = decode_dss_signature(held.key.sign(signed.encode(), _ALGORITHM))
        return f"{signed}.{b64url_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
