"""Execution result: the 200 of execute, and of approve."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import ONLY_DEV, row, rows
from tests.conformance.shapes import OUTCOMES, is_id, is_integer

Result = dict[str, Any]


@pytest.fixture(scope="module")
def result(gate: Deployment) -> Result:
    """The result of an agent's call."""
    answer = gate.agent().execute("text_digest", {"text": "hello"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@rows(
    "execution-result",
    {
        "action_id": lambda one: one["action_id"] == "text_digest",
        "output": lambda one: one["output"]["bytes"] == 5 and one["output"]["sha256"].startswith("2cf24dba"),
        "verification_outcome": lambda one: one["verification_outcome"] in OUTCOMES,
        "verification": lambda one: (
            one["verification"]["outcome"] == one["verification_outcome"]
            and one["verification"]["is_fully_successful"] is True
        ),
        "runtime": lambda one: (
            is_integer(one["runtime"]["duration_ms"])
            and one["runtime"]["exit_code"] == 0
            and is_integer(one["runtime"]["fuel_consumed"], 1)
        ),
    },
)
def test_the_result_has_it(result: Result, case: Callable[[Result], bool]) -> None:
    assert case(result)


@row("execution-result/trace_id")
def test_the_trace_is_that_of_the_event(gate: Deployment, result: Result) -> None:
    (event,) = gate.events(trace_id=result["trace_id"])
    assert event["receipt_id"] == result["receipt_id"]


@row("execution-result/grant_id")
def test_the_grant_is_that_of_the_receipt(gate: Deployment, result: Result) -> None:
    assert is_id("grant_", result["grant_id"])
    assert gate.receipt(result["receipt_id"])["grant_id"] == result["grant_id"]


@row("execution-result/receipt_id")
def test_the_receipt_is_there(gate: Deployment, result: Result) -> None:
    assert is_id("rcpt_", result["receipt_id"])
    assert gate.receipt(result["receipt_id"])["provider_receipt"] == result["output"]


@row("execution-result/approval")
def test_only_an_approved_call_says_who_approved_it(gate: Deployment, result: Result) -> None:
    approval_id = gate.held(gate.agent())
    approved = gate.operator().post(f"/v1/approvals/{approval_id}/approve").json()
    assert approved["approval"]["approval_id"] == approval_id
    assert approved["approval"]["approved_by"] == gate.operator_name
    assert "approval" not in result
    assert set(result) <= set(approved)


@ONLY_DEV
@row("execution-result/learned_domain")
def test_only_a_call_approved_with_a_domain_to_learn_echoes_it(gate: Deployment, result: Result) -> None:
    approval_id = gate.held(gate.agent(), "http_host", {"host": "learned.gateway.test"})
    operator = gate.operator()
    try:
        approved = operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain=learned.gateway.test")
        assert approved.status_code == 200, approved.text
        assert approved.json()["learned_domain"] == "learned.gateway.test"
        assert "learned_domain" not in result
    finally:
        operator.delete("/v1/admin/domains/clear")


@pytest.mark.parametrize(
    ("action", "is_successful"),
    [
        pytest.param("text_digest", True, marks=row("execution-result/is_fully_successful")),
        pytest.param("unseen", False, marks=row("execution-result/is_fully_successful")),
        pytest.param("unchecked", False, marks=row("execution-result/is_fully_successful")),
    ],
)
def test_full_success_needs_an_effect_that_was_seen_or_declared_unverifiable(
    gate: Deployment, action: str, is_successful: bool
) -> None:
    answer = gate.agent().execute(action, {"text": "x"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification"]["is_fully_successful"] is is_successful
