"""Grants: a signed word that one plan may run once, for the worker that is about to run it.

An ES256 JWS over the plan's hash (docs/decisions.md). The worker holds the public key alone, and checks plan, module,
epoch and time before it runs anything. That a grant is used once is the ledger's business.
"""

from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from frontend.auth.keys import public_key_of
from ipc.plan import Plan, plan_hash

GRANT_TYPE = "gateway-grant+jwt"


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
        self._header = {"typ": GRANT_TYPE, "kid": public.jkt}

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
        return jwt.encode(claims, self._key, algorithm="ES256", headers=self._header)
