"""Leases and operator keys that must be refused, and leases that must not be issued, by a running gateway."""

import time
from typing import Any

import httpx
import pytest

from tests.support.forged_leases import FORGED_LEASES, Forged, Mint, parts_of
from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.proofs import Key, proof
from tests.support.proved_calls import BODY, EXECUTE, call, good, refused

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


def test_a_lease_ends_with_its_time_even_when_it_was_used_a_moment_before(gate: Gateway, key: Key, lease: str) -> None:
    for seconds in (1, 4, 16, 64):  # a machine may be too slow to use a lease that is so short
        now = int(time.time())
        token = Mint.of(gate.state, lease).claims(jti=f"lea_{now}_{seconds}", iat=now, nbf=now, exp=now + seconds)
        answers: list[httpx.Response] = []

        def has_expired(token: str = token, answers: list[httpx.Response] = answers) -> bool:
            answers.append(call(gate, token, good(gate, key, token)))
            return answers[-1].status_code != 200

        wait_for(has_expired, f"the end of a lease of {seconds} s", 120)
        refused(answers[-1], "lease_expired")
        if answers[0].status_code == 200:
            return
    raise AssertionError("no lease was good for a moment")


def test_an_expired_lease_is_refused_before_its_proof_is_looked_at_and_on_every_route(
    gate: Gateway, key: Key, lease: str
) -> None:
    old = Mint.of(gate.state, lease).claims(iat=10**9, nbf=10**9, exp=10**9 + 300)
    refused(call(gate, old, "no.proof.atall"), "lease_expired")
    for path in ("/v1/receipts/rcpt_x", "/v1/approvals/apr_x/poll"):
        text = proof(key, "GET", gate.base + path, old)
        refused(gate.http.get(path, headers={"Authorization": f"DPoP {old}", "DPoP": text}), "lease_expired")


# ------------------------------------------------------------------------------------------------ lease requests


def test_a_lease_request_that_will_not_do_is_400_and_names_the_field(gate: Gateway, key: Key) -> None:
    """`tests/frontend/api/handlers/test_leases.py` and `tests/frontend/auth/test_keys.py` have the tables."""
    for changes in (
        {"dpop_jwk": key.jwk | {"y": key.jwk["x"]}}, {"scopes": ["tools:call\n"]}, {"budgets": {"max_calls": True}},
    ):  # fmt: skip
        answer = ask_for_lease(gate, {"scopes": ["tools:call"], "dpop_jwk": key.jwk} | changes)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert answer.json()["message"].startswith(next(iter(changes)))
        assert key.jwk["x"] not in answer.text


def test_unknown_scopes_and_unknown_budgets_give_no_right(gate: Gateway, key: Key, lease: str) -> None:
    body = {
        "scopes": ["tools:call"],
        "dpop_jwk": key.jwk,
        "budgets": {"max_money": 5},
        "principal": "admin",
        "epoch": 9,
    }
    token = ask_for_lease(gate, body).json()["lease_jwt"]
    claims = parts_of(token)[1]
    assert (claims["sub"], claims["cnf"]) == ("dev:anonymous", {"jkt": key.jkt})
    assert claims["epoch"] == parts_of(lease)[1]["epoch"]
    assert "budgets" not in claims


def ask_for_lease(gate: Gateway, body: dict[str, Any]) -> httpx.Response:
    """One request for a lease, at the pace of all others."""
    gate.paces.leases.wait()
    return gate.http.post("/v1/leases", json=body)


# ------------------------------------------------------------------------------------------------ operators


def test_an_operator_key_that_is_not_one_is_told_apart_from_nothing(gate: Gateway, operator: Bearer) -> None:
    real = operator.token
    for wrong in (
        real[:-1], real + "0", real.upper(), real.replace("dev", "root"), "key-dev-", "key-dev-" + "0" * 32, "key--",
        "dev", real[::-1],
    ):  # fmt: skip
        bearer = Bearer(gate.http, gate.base, wrong, operator.prover)
        refused(bearer.get("/v1/admin/status"), "invalid_operator_token")


def test_no_agent_route_takes_an_operator_key(gate: Gateway, operator: Bearer) -> None:
    refused(operator.execute("text_digest", BODY), "invalid_lease")
    refused(operator.get("/v1/approvals/apr_x/poll"), "invalid_lease")
    operator.http = gate.over("client_socket")
    refused(operator.get("/v1/receipts/rcpt_x"), "invalid_lease")


def test_an_operator_proof_is_good_once_and_for_one_act(gate: Gateway, operator: Bearer) -> None:
    headers = operator.headers("GET", "/v1/admin/status")
    assert gate.http.get("/v1/admin/status", headers=headers).status_code == 200
    refused(gate.http.get("/v1/admin/status", headers=headers), "replay_detected")
    refused(gate.http.get("/v1/admin/intents", headers=headers), "invalid_dpop")
    headers = operator.headers("GET", "/v1/approvals/apr_x")
    refused(gate.http.post("/v1/approvals/apr_x/approve", headers=headers), "invalid_dpop")
