"""Execution result: the 200 of execute, and of approve."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.conformance.shapes import OUTCOMES, is_integer

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


@row(
    "execution-result/approval",
    "approval-states/approved-binds-operator",
    "admin-endpoints/approve",
    "other-errors/approve-404-consumed",
)
def test_only_an_approved_call_says_who_approved_it(gate: Deployment, result: Result) -> None:
    approval_id = gate.held(gate.agent(), body={"text": "approve"})
    operator = gate.operator()
    answer = operator.post(f"/v1/approvals/{approval_id}/approve")
    assert answer.status_code == 200
    approved = answer.json()
    assert approved["output"]["bytes"] == len("approve")
    assert approved["approval"]["approval_id"] == approval_id
    assert approved["approval"]["approved_by"] == gate.operator_name
    assert not {"approval", "learned_domain"} & set(result)
    assert set(result) <= set(approved)
    event = gate.events(trace_id=approved["trace_id"], decision="allow", event_type="ActionCall")[0]
    assert (event["grant_id"], event["approved_by"]) == (approved["grant_id"], gate.operator_name)
    assert event["operator_sender_binding"] == approved["approval"]["operator_sender_binding"]
    assert len(event["operator_sender_binding"]) == 43
    assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 404


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
