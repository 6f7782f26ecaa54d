"""Proofs: what they claim, and that no two are alike. The judges are PyJWT and the gateway's own verifier."""

import hashlib
import uuid

import jwt
from gateway_client import ProofKey
from gateway_client.keys import b64url
from gateway_client.wire.exchange import UnprovenCall, path_of, query_of
from gateway_client.wire.proofs import Prover, uuid7
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm

from frontend.auth.dpop import DpopVerifier

NOW = 1_800_000_000.25
KEY = ProofKey.generate()
BASE = "https://gateway.test:8443/base"
VERIFIER = DpopVerifier(BASE)


def test_a_proof_says_what_the_interface_asks_for() -> None:
    call = UnprovenCall("POST", "/v1/actions/a/execute", "x=1")
    proof = Prover(KEY, BASE, lambda: NOW).proof(call, "the token")
    header = jwt.get_unverified_header(proof)
    assert header == {"typ": "dpop+jwt", "alg": "ES256", "jwk": KEY.jwk}
    claims = jwt.decode(
        proof, ECAlgorithm.from_jwk(KEY.jwk), algorithms=["ES256"], options={"verify_iat": False}  # type: ignore[arg-type]
    )  # fmt: skip
    assert claims["htm"] == "POST"
    assert claims["htu"] == "https://gateway.test:8443/base/v1/actions/a/execute"
    assert claims["iat"] == int(NOW)
    assert claims["ath"] == b64url(hashlib.sha256(b"the token").digest())
    assert uuid.UUID(claims["jti"]).version == 7


@given(st.floats(0, 2**37), st.floats(0, 2**37))
def test_a_jti_is_a_uuid_of_version_seven_in_the_order_of_time(first: float, second: float) -> None:
    one, two = uuid.UUID(uuid7(first)), uuid.UUID(uuid7(second))
    assert (one.version, one.variant) == (7, uuid.RFC_4122)
    assert one != two
    if int(first * 1000) < int(second * 1000):
        assert one < two


@given(
    st.lists(
        st.tuples(st.sampled_from(["GET", "POST", "DELETE"]), st.text("abc.:@*/ü %#?", min_size=1, max_size=12)),
        min_size=1,
        max_size=5,
    ),
    st.text("abcXYZ-._~+/=", min_size=1, max_size=60),
)
def test_the_gateway_accepts_every_proof_and_none_equals_another(calls: list[tuple[str, str]], token: str) -> None:
    prover = Prover(KEY, BASE, lambda: NOW)
    proofs = []
    for method, segment in calls * 2:
        if segment in {".", ".."}:
            continue
        call = UnprovenCall(method, path_of("v1", segment), query_of(a=segment))
        proof = prover.proof(call, token)
        seen = VERIFIER.verify(
            proof, method=method, path=call.target, access_token=token, expected_jkt=KEY.thumbprint, now=NOW
        )
        proofs.append((proof, seen.jti))
    assert len({proof for proof, _ in proofs}) == len({jti for _, jti in proofs}) == len(proofs)
