"""Grants, read by another implementation."""

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ipc.keys.jwk import KeyRefused
from ipc.operations.calls import Approver
from notary.signing.grants import GRANT_MARGIN_SECONDS, GrantSigner
from tests.notary.samples import DIGEST, NOW, changed, make_terms

TERMS = make_terms(epoch=7, timeout_seconds=30.0)
SIGNER = GrantSigner(ec.generate_private_key(ec.SECP256R1()))


def read(token: str, signer: GrantSigner = SIGNER) -> dict[str, Any]:
    options: Any = {"verify_exp": False, "verify_iat": False}
    return jwt.decode(token, jwt.PyJWK(signer.jwk), algorithms=["ES256"], options=options)


def test_a_grant_says_what_may_run_and_until_when() -> None:
    signer = GrantSigner(ec.generate_private_key(ec.SECP256R1()))
    token = signer.sign(TERMS, "trc_1", "grant_1", now=NOW + 0.7, approver=None)
    assert read(token, signer) == {
        "grant_id": "grant_1", "plan_hash": DIGEST, "module_digest": DIGEST, "epoch": 7, "iat": int(NOW),
        "exp": int(NOW + 30 + GRANT_MARGIN_SECONDS), "trace_id": "trc_1",
    }  # fmt: skip
    header = jwt.get_unverified_header(token)
    assert (header["alg"], header["typ"]) == ("ES256", "gateway-grant+jwt")


def test_a_grant_outlives_the_deadline_of_its_call_by_less_than_a_minute() -> None:
    ends = read(SIGNER.sign(TERMS, "trc_1", "grant_1", now=NOW, approver=None))["exp"]
    assert 1 <= ends - (NOW + TERMS.timeout_seconds) < 60


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
    with pytest.raises(jwt.InvalidSignatureError):
        read(SIGNER.sign(TERMS, "trc_1", "g", now=NOW, approver=None), other)


def test_the_public_key_holds_nothing_private() -> None:
    assert set(SIGNER.jwk) == {"kty", "crv", "x", "y", "kid", "use", "alg"}


def test_a_key_on_another_curve_is_refused() -> None:
    with pytest.raises(KeyRefused, match=r'^crv: must be "P-256"'):
        GrantSigner(ec.generate_private_key(ec.SECP384R1()))


def test_a_key_that_follows_another_signs_from_then_on() -> None:
    signer = GrantSigner(ec.generate_private_key(ec.SECP256R1()))
    before = signer.kid
    signer.use(ec.generate_private_key(ec.SECP256R1()))
    token = signer.sign(TERMS, "trc_1", "g", now=NOW, approver=None)
    assert read(token, signer)["grant_id"] == "g"
    assert jwt.get_unverified_header(token)["kid"] == signer.kid != before
