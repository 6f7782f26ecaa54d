"""Events: what is written, when, and how it is found."""

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import seconds_of
from tests.conformance.underway import still_workers


@row("events/1-one-per-decision")
def test_each_decision_leaves_one_event(gate: Deployment, agent: Caller) -> None:
    for action, body in (
        ("text_digest", {"text": "x"}), ("forbidden_export", {"table": "t"}), ("held_digest", {"text": "x"}),
        ("little_fuel", {"text": "x"}), ("nothing", {}), ("text_digest", {"text": 1}),
    ):  # fmt: skip
        agent.execute(action, body)
    events = gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert [one["decision"] for one in events] == ["deny", "deny", "error", "pending_approval", "deny", "allow"]


@row("events/2-intent-then-receipt")
def test_the_intent_comes_before_and_the_receipt_after(gate: Deployment, agent: Caller) -> None:
    with still_workers(gate) as workers:
        call, intent = workers.begin(lambda: agent.execute("spin", {}))
        assert gate.events(session_id=agent.session_id, event_type="ActionCall") == []
    answer = call.answer()
    assert answer is not None
    receipt = gate.receipt(answer.json()["receipt_id"])
    assert receipt["grant_id"] == intent["grant_id"]
    assert seconds_of(intent["dispatched_at"]) <= seconds_of(receipt["finished_at"])


@row("events/3-webhooks-off")
def test_without_webhooks_there_are_none(gate: Deployment) -> None:
    assert gate.status()["webhooks"] == {"active": False, "pending_deliveries": 0}


@row("events/4-polling")
def test_an_agent_learns_by_polling(gate: Deployment, agent: Caller, operator: Caller) -> None:
    approval_id = gate.held(agent)
    poll = f"/v1/approvals/{approval_id}/poll"
    assert agent.get(poll).json()["state"] == "pending"
    operator.post(f"/v1/approvals/{approval_id}/deny", {"reason": "no"})
    assert agent.get(poll).json()["state"] == "denied"
