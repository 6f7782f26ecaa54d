"""Leases and grants as they are signed."""

import re
from typing import Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ipc.keys.jwk import KeyRefused
from ipc.leases import LEASE_KEY_KEPT_SECONDS
from ipc.operations.calls import Approver
from ipc.process.clock import iso
from notary.signing.grants import GRANT_MARGIN_SECONDS, GrantSigner
from notary.signing.keys import HeldKey
from notary.signing.keysets import ListedKey, public_jwk
from notary.signing.leases import lease_keys
from tests.notary.samples import DIGEST, NOW, make_issue, make_terms
from tests.support.signed_leases import SignedLease, signed_lease

KEY = ec.generate_private_key(ec.SECP256R1())
JWK = public_jwk(KEY)
HELD = HeldKey(KEY, JWK["kid"], (ListedKey(JWK, iso(NOW)),))


def sign(ttl: int = 300, **changes: Any) -> SignedLease:
    return signed_lease(HELD, make_issue(**{"jkt": "thumbprint"} | changes), epoch=3, now=NOW + 0.75, ttl=ttl)


def claims_of(lease: SignedLease) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(lease.token, options={"verify_signature": False})
    return claims


def test_a_lease_carries_exactly_the_claims_that_are_documented() -> None:
    lease = sign(owner="team-billing", max_calls=12)
    assert jwt.get_unverified_header(lease.token) == {"alg": "ES256", "kid": JWK["kid"], "typ": "gateway-lease+jwt"}
    assert claims_of(lease) == {
        "iss": "action-gateway", "aud": "action-gateway", "sub": "uid:1000", "iat": int(NOW), "nbf": int(NOW),
        "exp": int(NOW) + 300, "jti": lease.lease_jti, "session_id": lease.session_id, "scope": ["tools:call"],
        "budgets": {"max_calls": 12}, "cnf": {"jkt": "thumbprint"}, "epoch": 3, "owner": "team-billing",
        "identity_method": "none",
    }  # fmt: skip
    assert re.fullmatch(r"lea_[0-9a-f-]{36}", lease.lease_jti)
    assert re.fullmatch(r"ses_[0-9a-f-]{36}", lease.session_id)
    assert (lease.exp, lease.expires_at) == (int(NOW) + 300, iso(int(NOW) + 300))


def test_a_lease_without_owner_or_budget_has_no_such_claims() -> None:
    assert {"owner", "budgets"}.isdisjoint(claims_of(sign()))


def test_a_lease_names_issuer_and_subject_of_its_caller_s_token_and_otherwise_has_no_such_claims() -> None:
    event = msgspec.structs.replace(make_issue().event, identity_issuer="https://login.example", identity_subject="a")
    claims = claims_of(sign(event=event, identity_method="jwt"))
    named = ("identity_method", "identity_issuer", "identity_subject")
    assert [claims[name] for name in named] == ["jwt", "https://login.example", "a"]
    assert {"identity_issuer", "identity_subject"}.isdisjoint(claims_of(sign()))


def test_fronts_get_the_signing_key_first_and_the_ends_of_the_others() -> None:
    other = public_jwk(ec.generate_private_key(ec.SECP256R1()))
    keys = lease_keys(HeldKey(KEY, JWK["kid"], (ListedKey(other, iso(NOW - 90), iso(NOW - 60)), *HELD.listed)))
    over_at = NOW - 60 + LEASE_KEY_KEPT_SECONDS
    assert [(key.kid, key.over_at) for key in keys] == [(JWK["kid"], None), (other["kid"], over_at)]
    assert (keys[1].x, keys[1].y) == (other["x"], other["y"])


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
