"""Approval states: what is reported, what the list accepts, and every move."""

import threading
from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import ONLY_DEV, row, rows
from tests.conformance.shapes import seconds_of
from tests.conformance.underway import still_workers
from tests.support.gateway import ANSWER_SECONDS


def state_of(agent: Caller, approval_id: str) -> str:
    """The approval as the agent polls it."""
    answer = agent.get(f"/v1/approvals/{approval_id}/poll")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["state"])


def listed(gate: Deployment, status: str) -> list[str]:
    """Ids of the list that is filtered so."""
    answer = gate.operator().get(f"/v1/approvals?status={status}&limit=200")
    assert answer.status_code == 200, answer.text
    approvals = answer.json()["approvals"]
    assert {one["state"] for one in approvals} <= {status}
    return [one["approval_id"] for one in approvals]


def error_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def fail(gate: Deployment, approval_id: str) -> None:
    """An approval that can't be executed any more: its stored plan was changed behind the gateway's back."""
    statement = "update approvals set body = replace(body, 'held_digest', 'text_digest') where approval_id = ?"
    assert gate.change(statement, approval_id) == 1
    assert gate.operator().post(f"/v1/approvals/{approval_id}/approve").status_code == 409


class Ends:
    """One approval for each state that the poll or the filter knows."""

    def __init__(self, gate: Deployment) -> None:
        self.agent = gate.agent()
        self.ids: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        operator = gate.operator()
        for name in ("pending", "approved", "denied", "expired", "failed"):
            self.ids[name] = gate.held(self.agent, body={"text": f"will be {name}"})
        operator.post(f"/v1/approvals/{self.ids['approved']}/approve")
        operator.post(f"/v1/approvals/{self.ids['denied']}/deny")
        gate.expire(self.ids["expired"])
        fail(gate, self.ids["failed"])
        self.ids["claimed"] = gate.held(self.agent, "held_spin", {})
        with still_workers(gate) as workers:
            call, _ = workers.begin(lambda: operator.post(f"/v1/approvals/{self.ids['claimed']}/approve"))
            self.seen["claimed"] = state_of(self.agent, self.ids["claimed"])
            self.claimed = listed(gate, "claimed")
        assert call.status() == 200


@pytest.fixture(scope="module")
def ends(gate: Deployment) -> Ends:
    """Approvals in every state."""
    return Ends(gate)


@rows(
    "approval-states",
    {f"reported-{name}": name for name in ("pending", "claimed", "approved", "denied", "expired")},
)
def test_the_poll_reports_it(ends: Ends, case: str) -> None:
    state = ends.seen.get(case) or state_of(ends.agent, ends.ids[case])
    assert state == case


@rows("approval-states", {f"filter-{name}": name for name in ("pending", "claimed", "approved", "denied", "failed")})
def test_the_list_can_be_asked_for_it(gate: Deployment, ends: Ends, case: str) -> None:
    ids = ends.claimed if case == "claimed" else listed(gate, case)
    assert ends.ids[case] in ids
    others = {value for name, value in ends.ids.items() if name not in (case, "claimed")}  # it is approved by now
    assert not set(ids) & others


@row("approval-states/none-to-pending", "limits/approval-ttl")
def test_a_held_call_is_stored_for_five_minutes(gate: Deployment) -> None:
    agent = gate.agent()
    approval_id = gate.held(agent, body={"text": "stored"})
    assert state_of(agent, approval_id) == "pending"
    detail = gate.operator().get(f"/v1/approvals/{approval_id}").json()
    assert round(seconds_of(detail["expires_at"]) - seconds_of(detail["created_at"]), 2) == 300


@ONLY_DEV
@row(
    "approval-states/learn-on-success",
    "admin-endpoints/approve-learn",
    "execution-result/learned_domain",
    "learned-domain/source-approval",
)
def test_a_domain_is_learned_when_the_execution_succeeds(gate: Deployment) -> None:
    operator = gate.operator()
    approval_id = gate.held(gate.agent(), "http_host", {"host": "learned.gateway.test"})
    answer = operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain=learned.gateway.test")
    assert answer.status_code == 200, answer.text
    try:
        assert answer.json()["learned_domain"] == "learned.gateway.test"
        (rule,) = operator.get("/v1/admin/domains").json()["domains"]
        assert (rule["action_id"], rule["domain"], rule["source"]) == ("http_host", "learned.gateway.test", "approval")
        assert gate.agent().execute("http_host", {"host": "learned.gateway.test"}).status_code == 200
    finally:
        operator.delete("/v1/admin/domains/clear")


@row("approval-states/learn-not-on-failure")
def test_a_domain_is_not_learned_when_the_execution_fails(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    approval_id = gate.held(agent, "any_host", {"host": "fails.gateway.invalid"})
    answer = operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain=fails.gateway.invalid")
    assert error_of(answer) == (502, "action_execution_failed")
    rules = operator.get("/v1/admin/domains").json()["domains"]
    assert "fails.gateway.invalid" not in [one["domain"] for one in rules]
    assert agent.execute("any_host", {"host": "fails.gateway.invalid"}).status_code == 202


@row("approval-states/pending-to-denied", "events/4-polling")
def test_deny_ends_it_and_keeps_the_record(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    approval_id = gate.held(agent, "held_file", {"path": "denied.txt", "content": "x"})
    assert state_of(agent, approval_id) == "pending"
    assert operator.post(f"/v1/approvals/{approval_id}/deny", {"reason": "no"}).status_code == 200
    assert not (gate.state / "files" / "denied.txt").exists()
    assert state_of(agent, approval_id) == "denied"
    record = operator.get(f"/v1/approvals/{approval_id}").json()
    assert (record["state"], record["deny_reason"]) == ("denied", "no")


@row("approval-states/pending-to-expired", "other-errors/approve-404-expired")
def test_after_five_minutes_it_can_not_be_consumed_and_the_same_call_is_a_new_hold(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    approval_id = gate.held(agent, body={"text": "late"})
    gate.expire(approval_id)
    for verb in ("approve", "deny"):
        assert operator.post(f"/v1/approvals/{approval_id}/{verb}").status_code == 404
    assert state_of(agent, approval_id) == "expired"
    assert gate.held(agent, body={"text": "late"}) != approval_id


@row("approval-states/one-shot")
def test_of_many_approves_at_once_one_succeeds(gate: Deployment) -> None:
    approval_id = gate.held(gate.agent(), body={"text": "once"})
    codes: list[int] = []

    def approve() -> None:
        codes.append(gate.operator().post(f"/v1/approvals/{approval_id}/approve").status_code)

    threads = [threading.Thread(target=approve) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ANSWER_SECONDS)
    assert sorted(codes) == [200] + [404] * 5
    executed = gate.events(action_id="held_digest", decision="allow", event_type="ActionCall", limit=20)
    assert len([one for one in executed if one.get("approval_id") == approval_id]) == 1


@row("allowlist-entry/bypasses-hold", "approval-states/none-to-none")
def test_the_pair_is_not_held_and_other_pairs_are(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    pair = {"action_id": "held_digest", "agent_id": gate.principal}
    other = {"action_id": "held_file", "agent_id": "somebody-else"}
    assert agent.execute("held_digest", {"text": "before"}).status_code == 202
    assert operator.post("/v1/admin/policy/allowlist", pair).status_code == 200
    assert operator.post("/v1/admin/policy/allowlist", other).status_code == 200
    try:
        assert agent.execute("held_digest", {"text": "with"}).status_code == 200
        assert gate.events(session_id=agent.session_id, event_type="ActionCall")[0]["decision"] == "allow"
        assert agent.execute("held_file", {"path": "a", "content": "b"}).status_code == 202
    finally:
        for one in (pair, other):
            assert operator.delete("/v1/admin/policy/allowlist", one).status_code == 200
    assert agent.execute("held_digest", {"text": "after"}).status_code == 202
