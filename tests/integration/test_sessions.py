"""Sessions as operators see and end them: what a revoked agent meets, at every front, and what others do not notice."""

import threading
from typing import Any

import pytest

from tests.support.coded import Coded
from tests.support.gateway import Bearer, Gateway, wait_for

PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


@pytest.fixture(scope="module")
def gate(shared_by_two: Gateway) -> Gateway:
    """A gateway with two fronts: what holds there holds with one."""
    return shared_by_two


def listed(operator: Bearer, **wanted: str) -> dict[str, dict[str, Any]]:
    """Every page of the list, by session."""
    sessions: dict[str, dict[str, Any]] = {}
    query = "".join(f"&{name}={value}" for name, value in wanted.items())
    after = ""
    while True:
        page = operator.get(f"/v1/admin/sessions?limit=200{query}{after}").json()
        assert page["count"] == len(page["sessions"])
        sessions |= {one["session_id"]: one for one in page["sessions"]}
        if page["next"] is None:
            return sessions
        after = f"&after={page['next']}"


def revoke(operator: Bearer, session_id: str) -> Any:
    return operator.post(f"/v1/admin/sessions/{session_id}/revoke")


def test_a_session_is_listed_until_it_is_revoked_and_is_refused_everywhere_then(
    gate: Gateway, operator: Bearer
) -> None:
    agent, other = gate.agent(max_calls=5), gate.agent()
    receipt_id = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    hold = agent.execute("payment_transfer", PAYMENT).json()
    shown = listed(operator)[agent.session_id]
    assert (shown["principal"], shown["max_calls"], shown["calls_remaining"]) == ("dev:anonymous", 5, 3)
    assert shown["pending_approvals"] == 1
    answer = revoke(operator, agent.session_id)
    assert (answer.status_code, answer.json()) == (200, {
        "session_id": agent.session_id, "principal": "dev:anonymous", "expires_at": shown["expires_at"],
        "already_revoked": False,
    })  # fmt: skip
    for _ in range(4):
        for refused in (
            agent.execute("text_digest", {"text": "x"}),
            agent.get(f"/v1/approvals/{hold['approval_id']}/poll"),
            agent.get(f"/v1/receipts/{receipt_id}"),
        ):
            assert (refused.status_code, refused.json()) == (401, Coded("invalid_lease"))
        assert other.execute("text_digest", {"text": "x"}).status_code == 200
    assert agent.session_id not in listed(operator)
    assert other.session_id in listed(operator, principal="dev:anonymous")
    assert operator.get(f"/v1/approvals/{hold['approval_id']}").status_code == 404
    assert operator.post(f"/v1/approvals/{hold['approval_id']}/approve").status_code == 404
    (expired,) = wait_for(
        lambda: gate.events(trace_id=hold["trace_id"], event_type="ApprovalExpired"), "the end of its hold"
    )
    assert (expired["session_id"], expired["reason"]) == (agent.session_id, "its session was revoked")


def test_a_revocation_is_one_event_however_often_it_is_asked_for(gate: Gateway, operator: Bearer) -> None:
    agent = gate.agent()
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(revoke(operator, agent.session_id))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.json()["already_revoked"] for answer in answers) == [False, True, True]
    (event,) = [one for one in gate.events(session_id=agent.session_id) if one["event_type"] == "SessionRevoked"]
    assert event["principal"] == "operator:dev"
    assert event["change"]["principal"] == "dev:anonymous"


@pytest.mark.parametrize("session_id", ["ses_unknown", "ses_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c", "*"])
def test_a_session_that_does_not_live_is_not_found(operator: Bearer, session_id: str) -> None:
    answer = revoke(operator, session_id)
    assert (answer.status_code, answer.json()) == (404, Coded("session_not_found"))


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "after=x", "after=1", "principle=a"])
def test_a_list_that_asks_for_nonsense_is_refused(operator: Bearer, query: str) -> None:
    answer = operator.get(f"/v1/admin/sessions?{query}")
    assert (answer.status_code, answer.json()) == (400, Coded("invalid_request"))


def test_agents_can_neither_list_nor_revoke(gate: Gateway, agent: Bearer) -> None:
    assert agent.get("/v1/admin/sessions").status_code == 401
    assert agent.post(f"/v1/admin/sessions/{agent.session_id}/revoke").status_code == 401
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
