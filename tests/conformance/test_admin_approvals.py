"""Admin socket endpoints: approvals."""

from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import seconds_of


@pytest.fixture(scope="module")
def ids(gate: Deployment) -> dict[str, str]:
    """One approval of each fate."""
    agent, operator = gate.agent(), gate.operator()
    by_fate = {name: gate.held(agent, body={"text": f"fate {name}"}) for name in ("pending", "approved", "denied")}
    assert operator.post(f"/v1/approvals/{by_fate['approved']}/approve").status_code == 200
    assert operator.post(f"/v1/approvals/{by_fate['denied']}/deny").status_code == 200
    return by_fate


def listed(operator: Caller, query: str = "") -> list[dict[str, Any]]:
    answer = operator.get(f"/v1/approvals{query}")
    assert answer.status_code == 200, answer.text
    assert {"approvals", "count"} <= set(answer.json())
    assert answer.json()["count"] == len(answer.json()["approvals"])
    return list(answer.json()["approvals"])


@row("admin-endpoints/approvals")
def test_the_list_is_newest_first(operator: Caller, ids: dict[str, str]) -> None:
    approvals = listed(operator)
    times = [seconds_of(one["created_at"]) for one in approvals]
    assert times == sorted(times, reverse=True)
    places = [[one["approval_id"] for one in approvals].index(ids[name]) for name in ("denied", "approved", "pending")]
    assert places == sorted(places)


@row("admin-endpoints/approvals-status")
def test_the_list_by_status(operator: Caller, ids: dict[str, str]) -> None:
    for status in ids:
        approvals = listed(operator, f"?status={status}")
        assert ids[status] in [one["approval_id"] for one in approvals]
        assert {one["state"] for one in approvals} == {status}
    assert set(ids.values()) <= {one["approval_id"] for one in listed(operator)}
    assert operator.get("/v1/approvals?status=nonsense").status_code == 400


@row("admin-endpoints/approvals-limit")
def test_the_list_with_a_limit(operator: Caller, ids: dict[str, str]) -> None:
    assert len(listed(operator, "?limit=2")) == 2
    assert listed(operator, "?limit=1")[0]["approval_id"] == listed(operator)[0]["approval_id"]
    for wrong in ("0", "-1", "x", "201"):
        assert operator.get(f"/v1/approvals?limit={wrong}").status_code == 400


@row("admin-endpoints/approval", "other-errors/approval-404-unknown", "other-errors/approval-404-expired")
def test_the_detail_has_the_plan(gate: Deployment, operator: Caller, ids: dict[str, str]) -> None:
    answer = operator.get(f"/v1/approvals/{ids['pending']}")
    assert answer.status_code == 200
    assert answer.json()["request"] == {"text": "fate pending"}
    assert operator.get("/v1/approvals/apr_nothing").status_code == 404
    expired = gate.held(gate.agent(), body={"text": "expired"})
    gate.expire(expired)
    assert operator.get(f"/v1/approvals/{expired}").status_code == 404


@row("admin-endpoints/deny")
def test_deny_says_what_was_denied_by_whom_and_why(gate: Deployment, operator: Caller) -> None:
    held = gate.agent().execute("held_digest", {"text": "deny"}).json()
    answer = operator.post(f"/v1/approvals/{held['approval_id']}/deny", {"reason": "not today"})
    assert answer.status_code == 200
    assert answer.json() == {
        "decision": "deny", "trace_id": held["trace_id"], "action_id": "held_digest",
        "approval_id": held["approval_id"], "denied_by": gate.operator_name, "deny_reason": "not today",
    }  # fmt: skip


@row("admin-endpoints/deny-bare")
def test_deny_without_a_body(gate: Deployment, operator: Caller) -> None:
    approval_id = gate.held(gate.agent(), body={"text": "bare"})
    answer = operator.post(f"/v1/approvals/{approval_id}/deny")
    assert answer.status_code == 200
    assert set(answer.json()) == {"decision", "trace_id", "action_id", "approval_id", "denied_by", "deny_reason"}
