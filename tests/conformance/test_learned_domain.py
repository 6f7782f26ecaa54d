"""Learned domain: what operators added to an action's egress."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import ONLY_DEV, row, rows
from tests.conformance.shapes import seconds_of

Learned = dict[str, Any]
RULE = {"action_id": "any_host", "domain": "added.gateway.invalid"}


@pytest.fixture(scope="module", autouse=True)
def clean(gate: Deployment) -> Iterator[None]:
    """Remove the rules that this module has learned."""
    yield
    gate.operator().delete("/v1/admin/domains/clear")


@pytest.fixture(scope="module")
def learned(gate: Deployment) -> Learned:
    """One, as it is listed."""
    operator = gate.operator()
    assert operator.post("/v1/admin/domains", RULE).status_code == 200
    domains = operator.get("/v1/admin/domains").json()["domains"]
    return dict(next(one for one in domains if one["domain"] == RULE["domain"]))


@rows(
    "learned-domain",
    {
        "domain": lambda one: one["domain"] == RULE["domain"],
        "action_id": lambda one: one["action_id"] == RULE["action_id"],
        "source-cli": lambda one: one["source"] == "cli",
        "added_at": lambda one: seconds_of(one["added_at"]) > 0,
    },
)
def test_the_rule_has_it(learned: Learned, case: Callable[[Learned], bool]) -> None:
    assert case(learned)


@ONLY_DEV
@row("learned-domain/source-approval")
def test_a_domain_from_an_approval_says_so(gate: Deployment) -> None:
    operator = gate.operator()
    approval_id = gate.held(gate.agent(), "http_host", {"host": "learned.gateway.test"})
    assert operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain=learned.gateway.test").status_code == 200
    domains = operator.get("/v1/admin/domains").json()["domains"]
    (rule,) = [one for one in domains if one["domain"] == "learned.gateway.test"]
    assert (rule["action_id"], rule["source"]) == ("http_host", "approval")


@row("learned-domain/joins-allowlist")
def test_a_call_that_goes_there_is_not_held_any_more(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    body = {"host": "joins.gateway.invalid"}
    assert agent.execute("any_host", body).status_code == 202
    rule = {"action_id": "any_host", "domain": "joins.gateway.invalid"}
    assert operator.post("/v1/admin/domains", rule).status_code == 200
    answer = agent.execute("any_host", body | {"host": "joins.gateway.invalid"})
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    assert agent.execute("http_host", body).status_code == 202  # another action has not learned it
