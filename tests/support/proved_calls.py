"""One call with a lease and a proof that a test made itself, good or not, and what a refusal of either looks like."""

from typing import Any

import httpx

from tests.support.coded import Coded
from tests.support.gateway import Gateway
from tests.support.proofs import Key, proof

EXECUTE = "/v1/actions/text_digest/execute"
BODY = {"text": "x"}


def lease_for(gate: Gateway, key: Key, **more: Any) -> str:
    """A good lease bound to the key; `more` joins the request."""
    gate.paces.leases.wait()
    answer = gate.http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": key.jwk} | more)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["lease_jwt"])


def call(gate: Gateway, token: str, proof_text: str) -> httpx.Response:
    """The answer to a call with these credentials."""
    headers = {"Authorization": f"DPoP {token}", "DPoP": proof_text}
    return gate.http.post(EXECUTE, headers=headers, json=BODY)


def refused(answer: httpx.Response, code: str) -> None:
    """Assert that the credentials were refused, and with which code."""
    assert (answer.status_code, answer.json()) == (401, Coded(code))
    assert answer.headers["www-authenticate"] == "DPoP"


def good(gate: Gateway, key: Key, token: str, **changes: Any) -> str:
    """A proof for that call; `changes` replace claims."""
    return proof(key, "POST", gate.base + EXECUTE, token, **changes)
