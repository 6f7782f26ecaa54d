"""Grants, read by another implementation."""

import json
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ipc.jwk import KeyRefused
from ipc.messages import Approver
from notary.signing.grants import FOLLOWED_KEYS, FOLLOWED_SECONDS, GRANT_MARGIN_SECONDS, GrantSigner
from tests.notary.samples import DIGEST, NOW, changed, make_terms

TERMS = make_terms(epoch=7, timeout_seconds=30.0)
SIGNER = GrantSigner(ec.generate_private_key(ec.SECP256R1()))


def read(token: str, signer: GrantSigner = SIGNER) -> dict[str, Any]:
    return read_with(token, signer.jwks_json)


def read_with(token: str, jwks: str) -> dict[str, Any]:
    key = jwt.PyJWKSet.from_json(jwks)[jwt.get_unverified_header(token)["kid"]]
    options: Any = {"verify_exp": False, "verify_iat": False}
    return jwt.decode(token, key, algorithms=["ES256"], options=options)


def test_a_grant_says_what_may_run_and_until_when() -> None:
    token = SIGNER.sign(TERMS, "trc_1", "grant_1", now=NOW + 0.7, approver=None)
    assert read(token) == {
        "grant_id": "grant_1", "plan_hash": DIGEST, "module_digest": DIGEST, "epoch": 7, "iat": int(NOW),
        "exp": int(NOW + 30 + GRANT_MARGIN_SECONDS), "trace_id": "trc_1",
    }  # fmt: skip
    header = jwt.get_unverified_header(token)
    assert (header["alg"], header["typ"]) == ("ES256", "gateway-grant+jwt")


def test_an_approved_grant_binds_the_operator() -> None:
    binding = Approver("apr_1", "alice", "thumbprint", "jti-1")
    token = SIGNER.sign(TERMS, "trc_1", "grant_1", now=NOW, approver=binding)
    assert read(token)["approval"] == {
        "approval_id": "apr_1", "approved_by": "alice", "operator_jkt": "thumbprint", "operator_proof_jti": "jti-1",
    }  # fmt: skip


def test_the_terms_of_another_plan_make_another_grant() -> None:
    tokens = [
        SIGNER.sign(terms, "trc_1", "g", now=NOW, approver=None)
        for terms in (TERMS, changed(TERMS, plan_hash="sha256:other"))
    ]
    assert len({read(token)["plan_hash"] for token in tokens}) == 2


def test_another_key_does_not_verify() -> None:
    other = GrantSigner(ec.generate_private_key(ec.SECP256R1()))
    token = SIGNER.sign(TERMS, "trc_1", "g", now=NOW, approver=None)
    with pytest.raises(KeyError):
        read(token, other)
    forged = json.loads(other.jwks_json)
    forged["keys"][0]["kid"] = json.loads(SIGNER.jwks_json)["keys"][0]["kid"]
    with pytest.raises(jwt.InvalidSignatureError):
        read_with(token, json.dumps(forged))


def test_the_published_keys_hold_nothing_private() -> None:
    (jwk,) = msgspec.json.decode(SIGNER.jwks_json)["keys"]
    assert set(jwk) == {"kty", "crv", "x", "y", "kid", "use", "alg"}


def test_a_key_on_another_curve_is_refused() -> None:
    with pytest.raises(KeyRefused):
        GrantSigner(ec.generate_private_key(ec.SECP384R1()))


def sign(signer: GrantSigner) -> str:
    return signer.sign(TERMS, "trc_1", "g", now=NOW, approver=None)


def test_what_an_earlier_key_signed_verifies_for_as_long_as_it_may_be_on_its_way() -> None:
    now = 100.0
    signer = GrantSigner(ec.generate_private_key(ec.SECP256R1()), lambda: now)
    text = signer.jwks_json
    assert signer.jwks_json is text
    first = sign(signer)
    signer.use(ec.generate_private_key(ec.SECP256R1()))
    second = sign(signer)
    now += FOLLOWED_SECONDS - 1
    signer.use(ec.generate_private_key(ec.SECP256R1()))
    third = sign(signer)
    assert len({jwt.get_unverified_header(token)["kid"] for token in (first, second, third)}) == 3
    now += FOLLOWED_SECONDS - 1
    for token in (first, second, third):
        assert read(token, signer)["grant_id"] == "g"
    now += 1
    assert read(third, signer)["grant_id"] == "g"
    for token in (first, second):
        with pytest.raises(KeyError):
            read(token, signer)


def test_the_keys_that_still_verify_are_bounded() -> None:
    signer = GrantSigner(ec.generate_private_key(ec.SECP256R1()))
    latest = sign(signer)
    for _ in range(FOLLOWED_KEYS + 3):
        latest = sign(signer)
        signer.use(ec.generate_private_key(ec.SECP256R1()))
    assert len(json.loads(signer.jwks_json)["keys"]) == FOLLOWED_KEYS + 1
    assert read(latest, signer)
    assert json.loads(signer.jwks_json)["keys"][0]["kid"] == signer.kid
