"""Calls that wait for a person, end to end."""

from typing import Any

import pytest

from tests.support.gateway import Bearer, Gateway
from tests.support.upstream import Upstream

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


@pytest.fixture(scope="module")
def gate(shared_by_two: Gateway) -> Gateway:
    """A gateway with two fronts: what holds there holds with one."""
    return shared_by_two


def held(agent: Bearer, **changes: Any) -> dict[str, Any]:
    answer = agent.execute("payment_transfer", PAYMENT | changes)
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    assert body["decision"] == "pending_approval"
    return body


def test_a_held_payment_is_shown_approved_executed_and_polled(
    gate: Gateway, agent: Bearer, operator: Bearer, up: Upstream
) -> None:
    hold = held(agent)
    poll = f"/v1/approvals/{hold['approval_id']}/poll"
    assert agent.get(poll).json()["state"] == "pending"
    listed = operator.get("/v1/approvals?status=pending&limit=200").json()
    assert hold["approval_id"] in [item["approval_id"] for item in listed["approvals"]]
    detail = operator.get(f"/v1/approvals/{hold['approval_id']}").json()
    assert detail["request"] == PAYMENT
    assert detail["request_hash"] == hold["request_hash"]
    assert detail["approved_targets"] == ["POST http://upstream.gateway.test/v1/transfers"]
    assert detail["approved_secrets"] == ["bank_token"]
    before = len(up.seen)
    answer = operator.post(f"/v1/approvals/{hold['approval_id']}/approve")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["verification_outcome"] == "verified"
    assert body["approval"]["approved_by"] == "dev"
    assert body["approval"]["approval_id"] == hold["approval_id"]
    assert body["trace_id"] == hold["trace_id"]
    assert len(up.seen) == before + 1
    assert up.seen[-1].json() == PAYMENT
    polled = agent.get(poll).json()
    assert (polled["state"], polled["status"], polled["receipt_id"]) == ("approved", "approved", body["receipt_id"])
    kinds = [event["event_type"] for event in gate.events(trace_id=hold["trace_id"])]
    assert kinds == ["ActionCall", "ApprovalGranted", "ActionCall"]


def test_a_denied_hold_is_not_executed_and_gives_its_call_back(gate: Gateway, operator: Bearer, up: Upstream) -> None:
    agent = gate.agent(max_calls=1)
    hold = held(agent)
    before = len(up.seen)
    answer = operator.post(f"/v1/approvals/{hold['approval_id']}/deny", {"reason": "not\x07 today"})
    assert answer.status_code == 200
    assert answer.json() == {
        "decision": "deny", "trace_id": hold["trace_id"], "action_id": "payment_transfer",
        "approval_id": hold["approval_id"], "denied_by": "dev", "deny_reason": "not today",
    }  # fmt: skip
    assert len(up.seen) == before
    polled = agent.get(f"/v1/approvals/{hold['approval_id']}/poll").json()
    assert (polled["state"], polled["deny_reason"]) == ("denied", "not today")
    assert agent.execute("text_digest", {"text": ""}).status_code == 200


def test_a_session_can_hold_twenty_calls_and_no_more(gate: Gateway) -> None:
    agent = gate.agent(max_calls=30)
    for number in range(20):
        held(agent, amount_cents=1000 + number)
    answer = agent.execute("payment_transfer", PAYMENT | {"amount_cents": 2000})
    assert (answer.status_code, answer.json()) == (429, {"error": "too_many_pending_approvals"})
    for _ in range(10):  # the refused hold gave its call back
        assert agent.execute("text_digest", {"text": ""}).status_code == 200
    assert agent.execute("text_digest", {"text": ""}).json() == {"error": "budget_exhausted"}


@pytest.mark.parametrize(
    "query", ["status=nonsense", "limit=0", "limit=201", "limit=x", "limit=1&limit=2", "other=1"], ids=str
)
def test_a_list_query_out_of_range_is_a_clear_400(operator: Bearer, query: str) -> None:
    answer = operator.get(f"/v1/approvals?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_request"
    assert answer.json()["message"]
