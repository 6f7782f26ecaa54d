"""Leases as they are signed."""

import re
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from ipc.leases import LEASE_KEY_KEPT_SECONDS
from ipc.process.clock import iso
from notary.signing.keys import HeldKey
from notary.signing.keysets import ListedKey, public_jwk, published
from notary.signing.leases import lease_keys
from tests.notary.samples import NOW, make_issue
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


def test_every_lease_is_a_session_of_its_own() -> None:
    made = [sign() for _ in range(3)]
    assert len({one.session_id for one in made}) == len({one.lease_jti for one in made}) == 3


def test_a_stranger_can_verify_a_lease_with_the_published_key() -> None:
    token = sign().token
    key = jwt.PyJWKSet.from_dict(published(HELD.listed, HELD.kid))[jwt.get_unverified_header(token)["kid"]]
    options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
    assert jwt.decode(token, key, ["ES256"], audience="action-gateway", options=options)["sub"] == "uid:1000"


def test_fronts_get_the_signing_key_first_and_the_ends_of_the_others() -> None:
    other = public_jwk(ec.generate_private_key(ec.SECP256R1()))
    keys = lease_keys(HeldKey(KEY, JWK["kid"], (ListedKey(other, iso(NOW - 90), iso(NOW - 60)), *HELD.listed)))
    over_at = NOW - 60 + LEASE_KEY_KEPT_SECONDS
    assert [(key.kid, key.over_at) for key in keys] == [(JWK["kid"], None), (other["kid"], over_at)]
    assert (keys[1].x, keys[1].y) == (other["x"], other["y"])
