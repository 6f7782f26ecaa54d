"""Lease: the answer of POST /v1/leases."""

import base64
import hashlib
import json
import time
from typing import Any

import jwt
import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import BOTH_MODES, row
from tests.conformance.shapes import seconds_of
from tests.support.gateway import Prover, b64


@pytest.fixture(scope="module")
def prover() -> Prover:
    """The key that the lease is asked for."""
    return Prover()


@pytest.fixture(scope="module")
def lease(gate: Deployment, prover: Prover) -> dict[str, Any]:
    """One lease; `asked_at` and `had_at` are ours, Unix seconds."""
    asked_at = time.time()
    answer = gate.lease({"scopes": ["tools:call"], "dpop_jwk": prover.jwk})
    assert answer.status_code == 200, answer.text
    return dict(answer.json()) | {"asked_at": asked_at, "had_at": time.time()}


@BOTH_MODES
@row("lease/lease_jwt", "lease/session_id", "lease/lease_jti")
def test_the_token_is_signed_by_a_published_key_and_bound_to_the_callers(
    gate: Deployment, lease: dict[str, Any], prover: Prover
) -> None:
    token = lease["lease_jwt"]
    kid = jwt.get_unverified_header(token)["kid"]
    keys = jwt.PyJWKSet.from_dict(gate.client.get("/.well-known/jwks.json").json())
    claims = jwt.decode(token, keys[kid].key, algorithms=["ES256"], audience="action-gateway", issuer="action-gateway")
    thumbprint = hashlib.sha256(json.dumps(prover.jwk, sort_keys=True, separators=(",", ":")).encode()).digest()
    assert claims["cnf"] == {"jkt": b64(thumbprint)}
    assert (claims["jti"], claims["session_id"]) == (lease["lease_jti"], lease["session_id"])
    assert (claims["jti"].startswith("lea_"), claims["session_id"].startswith("ses_")) == (True, True)
    assert claims["sub"] == gate.principal


@row("lease/expires_at", "dpop-rules/5-lease-lifetime", "limits/lease-lifetime")
def test_it_expires_in_five_minutes(lease: dict[str, Any]) -> None:
    claims = json.loads(base64.urlsafe_b64decode(lease["lease_jwt"].split(".")[1] + "=="))
    assert claims["exp"] - claims["iat"] == 300
    assert abs(seconds_of(lease["expires_at"]) - claims["exp"]) < 1
    assert int(lease["asked_at"]) <= claims["exp"] - 300 <= lease["had_at"]
