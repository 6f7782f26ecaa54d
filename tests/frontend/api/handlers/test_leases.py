"""POST /v1/leases: what is asked for, part by part."""

from typing import Any

import msgspec

from tests.support.front_core import Core
from tests.support.proofs import ABSENT, Key

AGENT = Key()
MAX_CALLS = 2**53 - 1
GOOD: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": AGENT.jwk, "budgets": {"max_calls": 5}}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"scopes": ABSENT}, "scopes:"), ({"scopes": None}, "scopes:"), ({"scopes": []}, "scopes:"),
    ({"scopes": "tools:call"}, "scopes:"), ({"scopes": {"tools:call": 1}}, "scopes:"),
    ({"scopes": ["tools:call", "SECRET"]}, "scopes[1]:"), ({"scopes": [1]}, "scopes[0]:"),
    ({"scopes": [["tools:call"]]}, "scopes[0]:"), ({"scopes": ["tools:call"] * 33}, "scopes:"),
    ({"dpop_jwk": ABSENT}, "dpop_jwk:"), ({"dpop_jwk": None}, "dpop_jwk:"), ({"dpop_jwk": "SECRET"}, "dpop_jwk:"),
    ({"dpop_jwk": {**AGENT.jwk, "kty": "SECRET"}}, "dpop_jwk.kty:"),
    ({"dpop_jwk": {**AGENT.jwk, "crv": "SECRET"}}, "dpop_jwk.crv:"),
    ({"dpop_jwk": {**AGENT.jwk, "x": "SECRET"}}, "dpop_jwk.x:"),
    ({"dpop_jwk": {**AGENT.jwk, "y": None}}, "dpop_jwk.y:"),
    ({"dpop_jwk": {**AGENT.jwk, "d": "SECRET"}}, "dpop_jwk.d:"),
    ({"dpop_jwk": {**AGENT.jwk, "SECRET": 1}}, "dpop_jwk:"),
    ({"dpop_jwk": {**AGENT.jwk, "y": AGENT.x}}, "dpop_jwk: x and y are not a point"),
    ({"budgets": []}, "budgets:"), ({"budgets": 5}, "budgets:"), ({"budgets": "SECRET"}, "budgets:"),
    ({"budgets": {"max_calls": -1}}, "budgets.max_calls:"),
    ({"budgets": {"max_calls": MAX_CALLS + 1}}, "budgets.max_calls:"),
    ({"budgets": {"max_calls": True}}, "budgets.max_calls:"),
    ({"budgets": {"max_calls": 5.5}}, "budgets.max_calls:"),
    ({"budgets": {"max_calls": "5"}}, "budgets.max_calls:"),
]  # fmt: skip
TAKEN: list[dict[str, Any]] = [
    {"budgets": ABSENT}, {"budgets": None}, {"budgets": {}}, {"budgets": {"max_calls": None}},
    {"budgets": {"max_cost_usd_cents": 7}}, {"budgets": {"max_calls": 0}},
    {"budgets": {"max_calls": MAX_CALLS, "other": []}}, {"agent_id": "x"},
    {"scopes": ["tools:call", *(f"scope:{place}" for place in range(31))]},
]  # fmt: skip


def body_of(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**GOOD, **changes}.items() if value is not ABSENT}


async def test_a_refusal_of_a_bad_request_names_the_field_and_never_its_value(core: Core) -> None:
    for changes, field in REFUSED:
        answer = await core.ask("POST", "/v1/leases", body_of(changes))
        body = msgspec.json.decode(answer.body)
        assert (answer.status, body["error"]) == (400, "invalid_request"), changes
        assert body["message"].startswith(field)
        assert "SECRET" not in body["message"]
    for text in (b"null", b"[]", b'"x"', b"1", b"true", b"{", b"\xff"):
        assert (await core.ask("POST", "/v1/leases", text)).status == 400
    assert await core.events(event_type="LeaseIssued") == []


async def test_a_good_request_is_taken_with_or_without_a_budget_and_whatever_else_it_says(core: Core) -> None:
    for changes in TAKEN:
        answer = await core.ask("POST", "/v1/leases", body_of(changes))
        assert answer.status == 200, (changes, answer.body)
