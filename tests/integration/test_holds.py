"""Calls that wait for a person, end to end."""

import threading
from typing import Any

import pytest

from tests.support.gateway import Bearer, Gateway
from tests.support.upstream import Upstream

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


@pytest.fixture(scope="module")
def gate(either: Gateway) -> Gateway:
    """With one front, and with two."""
    return either


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


def test_the_same_call_again_is_the_same_hold(gate: Gateway, operator: Bearer) -> None:
    agent = gate.agent(max_calls=2)
    first, second = held(agent), held(agent)
    assert first["approval_id"] == second["approval_id"]
    other = held(agent, amount_cents=1)
    assert other["approval_id"] != first["approval_id"]
    assert agent.execute("payment_transfer", PAYMENT | {"amount_cents": 2}).json() == {"error": "budget_exhausted"}


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


def test_an_approval_is_consumed_once(agent: Bearer, operator: Bearer) -> None:
    hold = held(agent, amount_cents=3)
    path = f"/v1/approvals/{hold['approval_id']}"
    assert operator.post(f"{path}/approve").status_code == 200
    for again in ("approve", "deny"):
        answer = operator.post(f"{path}/{again}")
        assert (answer.status_code, answer.json()) == (404, {"error": "approval_not_found"})


@pytest.mark.parametrize("verbs", [["approve"] * 8, ["approve", "deny"] * 4], ids=["alike", "against each other"])
def test_of_eight_operators_at_once_one_wins_and_the_others_hear_404(
    gate: Gateway, agent: Bearer, up: Upstream, verbs: list[str]
) -> None:
    hold = held(agent, amount_cents=4)
    before = len(up.seen)
    answers: list[tuple[str, int]] = []

    def decide(verb: str) -> None:
        answers.append((verb, gate.operator().post(f"/v1/approvals/{hold['approval_id']}/{verb}").status_code))

    threads = [threading.Thread(target=decide, args=(verb,)) for verb in verbs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(status for _, status in answers) == [200] + [404] * 7
    (winner,) = [verb for verb, status in answers if status == 200]
    assert len(up.seen) - before == (1 if winner == "approve" else 0)
    polled = agent.get(f"/v1/approvals/{hold['approval_id']}/poll").json()
    assert polled["state"] == {"approve": "approved", "deny": "denied"}[winner]


def test_a_session_sees_only_its_own_holds(gate: Gateway, agent: Bearer) -> None:
    hold = held(agent, amount_cents=5)
    answer = gate.agent().get(f"/v1/approvals/{hold['approval_id']}/poll")
    assert answer.status_code == 403
    assert agent.get("/v1/approvals/apr_nothing/poll").status_code == 404


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
