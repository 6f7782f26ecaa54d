"""Events: what is written, when, and how it is found."""

import hashlib
from itertools import pairwise
from typing import Any

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import seconds_of
from tests.conformance.stories import Drain
from tests.conformance.underway import still_workers


def newest(gate: Deployment) -> dict[str, Any]:
    """The operator's newest; a hold of another test may expire at any time."""
    return gate.events(principal=f"operator:{gate.operator_name}", limit=1)[0]


@row("events/1-one-per-decision")
def test_each_decision_leaves_one_event(gate: Deployment, agent: Caller) -> None:
    for action, body in (
        ("text_digest", {"text": "x"}), ("forbidden_export", {"table": "t"}), ("held_digest", {"text": "x"}),
        ("little_fuel", {"text": "x"}), ("nothing", {}), ("text_digest", {"text": 1}),
    ):  # fmt: skip
        agent.execute(action, body)
    events = gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert [one["decision"] for one in events] == ["deny", "deny", "error", "pending_approval", "deny", "allow"]


@row("events/1-AdminDrain")
def test_a_drain_is_an_event(drain: Drain) -> None:
    assert len(drain.events) == 2
    assert {one["principal"] for one in drain.events} == {f"operator:{drain.operator_name}"}


@row("events/1-AdminReload")
def test_a_reload_is_an_event(gate: Deployment) -> None:
    assert gate.reload().status_code == 200
    assert newest(gate)["event_type"] == "AdminReload"


@row("events/1-allowlist")
def test_a_change_of_the_allowlist_is_an_event(gate: Deployment, operator: Caller) -> None:
    pair = {"action_id": "held_digest", "agent_id": "watched"}
    operator.post("/v1/admin/policy/allowlist", pair)
    added = newest(gate)
    operator.delete("/v1/admin/policy/allowlist", pair)
    removed = newest(gate)
    assert [one["event_type"] for one in (added, removed)] == ["PolicyAllowlistAdded", "PolicyAllowlistRemoved"]


@row("events/1-revoke-all")
def test_revoke_all_is_an_event(gate: Deployment, operator: Caller) -> None:
    operator.post("/v1/admin/revoke-all")
    assert newest(gate)["event_type"] == "AdminRevokeAll"


@row("events/1-receipt-keys")
def test_a_look_at_the_receipt_keys_is_an_event(gate: Deployment, operator: Caller) -> None:
    operator.get("/v1/receipt-keys")
    assert newest(gate)["event_type"] == "ReceiptKeysRead"


@row("events/1-chained")
def test_each_event_has_the_hash_of_the_one_before(gate: Deployment, agent: Caller) -> None:
    agent.execute("text_digest", {"text": "x"})
    stored = gate.select("select event_id, bytes from events order by seq")
    followed = {following: bytes(data) for (_, data), (following, _) in pairwise(stored)}
    for event in gate.events(session_id=agent.session_id):
        before = hashlib.sha256(followed[event["event_id"]]).hexdigest()
        assert event["prev_hash"].removeprefix("sha256:") == before


@row("events/1-queryable")
def test_an_event_is_found(gate: Deployment, agent: Caller) -> None:
    trace_id = agent.execute("text_digest", {"text": "x"}).json()["trace_id"]
    (event,) = gate.events(trace_id=trace_id)
    assert event["session_id"] == agent.session_id


@row("events/1-verifiable")
def test_the_chain_is_whole(operator: Caller) -> None:
    report = operator.get("/v1/audit/verify").json()
    assert (report["intact"], report["broken_at"]) == (True, None)


@row("events/1-status-silent")
def test_a_look_at_the_status_leaves_no_event(gate: Deployment, operator: Caller) -> None:
    before = newest(gate)
    operator.get("/v1/admin/status")
    assert newest(gate) == before


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
