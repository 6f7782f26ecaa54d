"""Every row of the hostile proofs table is refused, for its own reason, with a key seen before and with a fresh one."""

import time

import pytest

from frontend.auth.dpop import DpopVerifier
from frontend.errors import GateError
from tests.support.hostile_proofs import HOSTILE_PROOFS, Hostile, Scene

BASE = "http://127.0.0.1:3000"
PATH = "/v1/actions/a/execute"


def scene() -> Scene:
    return Scene("POST", BASE + PATH, "token.of.lease", time.time())


def verify(verifier: DpopVerifier, at: Scene, proof: str) -> object:
    return verifier.verify(
        proof, method=at.method, path=PATH, access_token=at.token, expected_jkt=at.key.jkt, now=at.now
    )


@pytest.mark.parametrize("is_key_cached", [False, True], ids=["fresh-key", "cached-key"])
@pytest.mark.parametrize("row", HOSTILE_PROOFS, ids=lambda row: row.name)
def test_a_hostile_proof_is_refused_for_its_own_reason(row: Hostile, is_key_cached: bool) -> None:
    at = scene()
    verifier = DpopVerifier(BASE)
    if is_key_cached:
        verify(verifier, at, at.proof())
    with pytest.raises(GateError) as refused:
        verify(verifier, at, row.build(at))
    assert refused.value.code == row.code
    assert refused.value.status == 401
    assert row.reason in (refused.value.cause or "")
    assert refused.value.body() == {"error": row.code}
