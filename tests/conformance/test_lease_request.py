"""POST /v1/leases: the request."""

from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.support.gateway import Prover

KEY = Prover().jwk
WRONG_SCOPES: dict[str, Any] = {"missing": None, "a text": "tools:call", "numbers": [1], "empty": []}
WRONG_KEYS: dict[str, Any] = {
    "missing": None, "a text": "key", "RSA": {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    "another curve": KEY | {"crv": "P-384"}, "without y": {name: KEY[name] for name in ("kty", "crv", "x")},
    "off the curve": KEY | {"y": KEY["x"]}, "not base64url": KEY | {"x": "%" * 43},
}  # fmt: skip


def refused(gate: Deployment, body: dict[str, Any]) -> None:
    answer = gate.lease({name: value for name, value in body.items() if value is not None})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), answer.text


@pytest.mark.parametrize("scopes", WRONG_SCOPES.values(), ids=WRONG_SCOPES)
@row("lease-request/scopes")
def test_scopes_are_an_array_of_strings(gate: Deployment, scopes: Any) -> None:
    refused(gate, {"scopes": scopes, "dpop_jwk": KEY})
    assert gate.lease({"scopes": ["tools:call"], "dpop_jwk": KEY}).status_code == 200


@pytest.mark.parametrize("key", WRONG_KEYS.values(), ids=WRONG_KEYS)
@row("lease-request/dpop_jwk")
def test_the_key_is_a_public_key_on_the_curve(gate: Deployment, key: Any) -> None:
    refused(gate, {"scopes": ["tools:call"], "dpop_jwk": key})


@row("lease-request/budgets", "budget/exhausted", "execute-errors/403-budget_exhausted")
def test_a_budget_counts_and_without_one_nothing_does(gate: Deployment) -> None:
    limited, free = gate.agent(max_calls=1), gate.agent()
    assert limited.execute("text_digest", {"text": "1"}).status_code == 200
    answer = limited.execute("text_digest", {"text": "2"})
    assert (answer.status_code, answer.json()) == (403, {"error": "budget_exhausted"})
    assert [free.execute("text_digest", {"text": "x"}).status_code for _ in range(3)] == [200] * 3
    stored = gate.select("select max_calls from budgets where session_id = ?", limited.session_id)
    assert stored == [(1,)]
    assert not gate.select("select 1 from budgets where session_id = ?", free.session_id)
