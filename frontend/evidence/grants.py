"""Grants: a signed word that one plan may run once, for the worker that is about to run it.

An ES256 JWS over the plan's hash (docs/decisions.md). The worker holds the public key alone, and checks plan, module,
epoch and time before it runs anything. That a grant is used once is the ledger's business.
"""

from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from frontend.auth.encoding import b64url_encode
from frontend.auth.keys import public_key_of
from ipc.plan import Plan, plan_hash

GRANT_TYPE = "gateway-grant+jwt"
_ALGORITHM = ECDSA(SHA256())
_encode = msgspec.json.Encoder(order="sorted").encode


class ApprovalBinding(msgspec.Struct, frozen=True):
    """Who approved, bound into the grant's signature."""

    approval_id: str
    approved_by: str
    operator_jkt: str
    """RFC 7638 thumbprint of the key that the operator's proof was signed with."""
    operator_proof_jti: str


class GrantSigner:
    """Signs with one P-256 key. `jwks_json` is what verifies, as JSON text."""

    def __init__(self, key: EllipticCurvePrivateKey) -> None:
        """Raises KeyRefused for a key on another curve."""
        public = public_key_of(key)
        self.jwks_json = msgspec.json.encode(
            {"keys": [{**public.jwk(), "kid": public.jkt, "use": "sig", "alg": "ES256"}]}
        ).decode()
        self._key = key
        self._head = b64url_encode(_encode({"alg": "ES256", "kid": public.jkt, "typ": GRANT_TYPE})) + "."

    def sign(self, plan: Plan, grant_id: str, *, now: float, ttl: float, approval: ApprovalBinding | None) -> str:
        """A compact JWS over the plan, valid for `ttl` seconds from `now` (Unix seconds)."""
        claims: dict[str, Any] = {
            "grant_id": grant_id,
            "plan_hash": plan_hash(plan),
            "module_digest": plan.provider_module_digest,
            "epoch": plan.epoch,
            "iat": int(now),
            "exp": int(now + ttl),
            "trace_id": plan.trace_id,
        }
        if approval is not None:
            claims["approval"] = msgspec.to_builtins(approval)
        # Every call has a grant: written here in a third of the time that a JOSE library takes (RFC 7515 §3.1,
        # RFC 7518 §3.4); the tests and the worker read it with code that shares nothing with this.
        signed = self._head + b64url_encode(_encode(claims))
        r, s = decode_dss_signature(self._key.sign(signed.encode(), _ALGORITHM))
        return f"{signed}.{b64url_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
