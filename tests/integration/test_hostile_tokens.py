"""Leases that must be refused, and what an operator's proof is good for, by a running gateway."""

import pytest

from tests.support.forged_leases import FORGED_LEASES, Forged, Mint
from tests.support.gateway import Bearer, Gateway
from tests.support.proofs import Key, proof
from tests.support.proved_calls import EXECUTE, call, good, refused

# ------------------------------------------------------------------------------------------------ leases


@pytest.mark.parametrize("row", FORGED_LEASES, ids=lambda row: row.name)
def test_a_forged_lease_is_refused(gate: Gateway, key: Key, lease: str, row: Forged) -> None:
    token = row.build(Mint.of(gate.state, lease))
    refused(call(gate, token, good(gate, key, token)), row.code)


def test_the_mint_of_these_tests_makes_leases_that_hold(gate: Gateway, key: Key, lease: str) -> None:
    token = Mint.of(gate.state, lease).claims(jti="lea_minted")
    assert token != lease
    assert call(gate, token, good(gate, key, token)).status_code == 200


def test_a_lease_is_bound_to_its_key_even_when_the_gateway_signed_another_binding(
    gate: Gateway, key: Key, lease: str
) -> None:
    thief = Key()
    refused(call(gate, lease, proof(thief, "POST", gate.base + EXECUTE, lease)), "invalid_dpop")
    moved = Mint.of(gate.state, lease).claims(cnf={"jkt": thief.jkt})
    refused(call(gate, moved, good(gate, key, moved)), "invalid_dpop")


def test_an_expired_lease_is_refused_before_its_proof_is_looked_at_and_on_every_route(
    gate: Gateway, key: Key, lease: str
) -> None:
    old = Mint.of(gate.state, lease).claims(iat=10**9, nbf=10**9, exp=10**9 + 300)
    refused(call(gate, old, "no.proof.atall"), "lease_expired")
    for path in ("/v1/receipts/rcpt_x", "/v1/approvals/apr_x/poll"):
        text = proof(key, "GET", gate.base + path, old)
        refused(gate.http.get(path, headers={"Authorization": f"DPoP {old}", "DPoP": text}), "lease_expired")


# ------------------------------------------------------------------------------------------------ operators


def test_an_operator_proof_is_good_once_and_for_one_act(gate: Gateway, operator: Bearer) -> None:
    headers = operator.headers("GET", "/v1/admin/status")
    assert gate.http.get("/v1/admin/status", headers=headers).status_code == 200
    refused(gate.http.get("/v1/admin/status", headers=headers), "replay_detected")
    refused(gate.http.get("/v1/admin/intents", headers=headers), "invalid_dpop")
    headers = operator.headers("GET", "/v1/approvals/apr_x")
    refused(gate.http.post("/v1/approvals/apr_x/approve", headers=headers), "invalid_dpop")
