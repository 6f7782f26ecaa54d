"""Holds whose time or plan is changed behind the gateway's back: they end, and nothing of them is executed."""

import time
from contextlib import closing

from tests.integration.test_store_faults import change, database, error_of, held
from tests.support.gateway import Gateway, wait_for
from tests.support.upstream import Upstream


def expire(gate: Gateway, approval_id: str) -> None:
    """Let five minutes pass for one hold."""
    past = time.time() - 1
    assert change(gate, "update approvals set expires_at = ? where approval_id = ?", past, approval_id) == 1


def test_a_hold_that_nobody_decides_expires_and_gives_its_call_back(gate: Gateway, up: Upstream) -> None:
    agent, operator = gate.agent(max_calls=1), gate.operator()
    approval_id = held(agent)
    before = len(up.seen)
    expire(gate, approval_id)
    for verb in ("approve", "deny"):  # whether or not the sweep has been there
        assert error_of(operator.post(f"/v1/approvals/{approval_id}/{verb}")) == (404, "approval_not_found")
    event = wait_for(lambda: gate.events(session_id=agent.session_id, event_type="ApprovalExpired"), "the event")[0]
    assert (event["decision"], event["approval_id"]) == ("deny", approval_id)
    assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["state"] == "expired"
    listed = operator.get("/v1/approvals?status=pending").json()["approvals"]
    assert approval_id not in [item["approval_id"] for item in listed]
    assert len(up.seen) == before
    wait_for(lambda: agent.execute("text_digest", {"text": "given back"}).status_code == 200, "the call given back")
    assert len(gate.events(session_id=agent.session_id, event_type="ApprovalExpired")) == 1


def test_the_detail_of_an_expired_hold_is_gone(gate: Gateway) -> None:
    """docs/contract.md, "Admin socket": `GET /v1/approvals/{approval_id}` is 404 if not found or expired."""
    agent, operator = gate.agent(), gate.operator()
    approval_id = held(agent, amount_cents=2)
    assert operator.get(f"/v1/approvals/{approval_id}").status_code == 200
    expire(gate, approval_id)
    assert error_of(operator.get(f"/v1/approvals/{approval_id}")) == (404, "approval_not_found")


def test_the_same_call_after_an_expired_hold_is_a_new_hold(gate: Gateway) -> None:
    agent = gate.agent(max_calls=2)
    first = held(agent, amount_cents=3)
    expire(gate, first)
    second = held(agent, amount_cents=3)
    assert second != first
    assert agent.get(f"/v1/approvals/{second}/poll").json()["state"] == "pending"


def test_a_stored_plan_that_was_changed_is_not_executed(gate: Gateway, up: Upstream) -> None:
    agent, operator = gate.agent(max_calls=1), gate.operator()
    approval_id = held(agent, amount_cents=4)
    with closing(database(gate)) as store:
        (body,) = store.execute("select body from approvals where approval_id = ?", (approval_id,)).fetchone()
        changed = body.replace("acct-1", "acct-6")
        assert changed != body
        store.execute("update approvals set body = ? where approval_id = ?", (changed, approval_id))
    before = len(up.seen)
    assert error_of(operator.post(f"/v1/approvals/{approval_id}/approve")) == (409, "plan_integrity")
    assert len(up.seen) == before
    assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["outcome"] == "failed"
    assert agent.execute("text_digest", {"text": "given back"}).status_code == 200
