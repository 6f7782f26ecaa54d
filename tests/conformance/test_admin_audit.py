"""Admin socket endpoints: audit."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import seconds_of
from tests.support.gateway import wait_for

Event = dict[str, Any]


def later_than(began: float) -> Callable[[], bool]:
    """So that no two events have the same time."""
    return lambda: int(time.time() * 1000) > int(began * 1000) + 1


@pytest.fixture(scope="module")
def caller(gate: Deployment) -> Caller:
    """A caller that was allowed, denied, held, and met an error, in this order."""
    agent = gate.agent()
    for action, body, status in (
        ("text_digest", {"text": "x"}, 200), ("forbidden_export", {"table": "t"}, 403),
        ("held_digest", {"text": "x"}, 202), ("little_fuel", {"text": "x"}, 502),
    ):  # fmt: skip
        assert agent.execute(action, body).status_code == status
        wait_for(later_than(time.time()), "another millisecond")
    return agent


@pytest.fixture(scope="module")
def own(gate: Deployment, caller: Caller) -> list[Event]:
    """Their events, newest first."""
    return gate.events(session_id=caller.session_id, event_type="ActionCall")


@row("admin-endpoints/events")
def test_events_come_by_time_descending(gate: Deployment, operator: Caller, caller: Caller) -> None:
    answer = operator.get("/v1/audit/events")
    assert answer.status_code == 200
    assert set(answer.json()) == {"events", "count"}
    times = [seconds_of(one["timestamp"]) for one in answer.json()["events"]]
    assert answer.json()["count"] == len(times)
    assert times == sorted(times, reverse=True)


@row("admin-endpoints/events-trace_id", "events/1-queryable")
def test_events_are_filtered_by_their_trace(gate: Deployment, own: list[Event]) -> None:
    assert gate.events(trace_id=own[0]["trace_id"]) == [own[0]]


@row("admin-endpoints/events-action_id")
def test_events_are_filtered_by_their_action(gate: Deployment, own: list[Event]) -> None:
    events = gate.events(action_id="forbidden_export")
    assert {one["action_id"] for one in events} == {"forbidden_export"}
    assert own[2] in events


@row("admin-endpoints/events-principal")
def test_events_are_filtered_by_their_principal(gate: Deployment, own: list[Event]) -> None:
    events = gate.events(principal=gate.principal, limit=1000)
    assert {one["principal"] for one in events} == {gate.principal}
    assert own[0] in events
    assert gate.events(principal="nobody") == []


@row("admin-endpoints/events-session_id")
def test_events_are_filtered_by_their_session(gate: Deployment, caller: Caller, own: list[Event]) -> None:
    events = gate.events(session_id=caller.session_id)
    assert [one for one in events if one["event_type"] == "ActionCall"] == own
    assert {one["session_id"] for one in events} == {caller.session_id}
    assert len(own) == 4


DECISIONS = ("error", "pending_approval", "deny", "allow")


@row("admin-endpoints/events-decision", *(f"audit-event/decision-{decision}" for decision in DECISIONS))
def test_events_are_filtered_by_their_decision(gate: Deployment, caller: Caller, own: list[Event]) -> None:
    for decision, event in zip(DECISIONS, own, strict=True):
        events = gate.events(session_id=caller.session_id, event_type="ActionCall", decision=decision)
        assert events == [event]
    assert gate.operator().get("/v1/audit/events?decision=perhaps").status_code == 400


@row("admin-endpoints/events-after")
def test_events_after_a_time_leave_out_those_at_it(gate: Deployment, caller: Caller, own: list[Event]) -> None:
    events = gate.events(session_id=caller.session_id, event_type="ActionCall", after=own[2]["timestamp"])
    assert events == own[:2]


@row("admin-endpoints/events-before")
def test_events_before_a_time_leave_out_those_at_it(gate: Deployment, caller: Caller, own: list[Event]) -> None:
    events = gate.events(session_id=caller.session_id, event_type="ActionCall", before=own[1]["timestamp"])
    assert events == own[2:]
    assert gate.operator().get("/v1/audit/events?before=yesterday").status_code == 400


@row("admin-endpoints/events-limit")
def test_a_list_of_events_is_as_long_as_its_limit_at_most(gate: Deployment, caller: Caller, own: list[Event]) -> None:
    assert gate.events(session_id=caller.session_id, event_type="ActionCall", limit=2) == own[:2]
    for wrong in ("0", "-1", "x", "1001"):
        assert gate.operator().get(f"/v1/audit/events?limit={wrong}").status_code == 400


@row("admin-endpoints/verify", "events/1-verifiable")
def test_the_chain_is_whole(gate: Deployment, operator: Caller, own: list[Event]) -> None:
    ((count,),) = gate.select("select count(*) from events")
    answer = operator.get("/v1/audit/verify")
    assert answer.status_code == 200
    report = answer.json()
    assert (report["intact"], report["broken_at"]) == (True, None)
    assert report["events_checked"] >= count > 0


@row("admin-endpoints/verify-broken")
def test_a_changed_event_is_found_and_named(gate: Deployment, operator: Caller, own: list[Event]) -> None:
    victim = own[2]["event_id"]
    ((seq, data),) = gate.select("select seq, bytes from events where event_id = ?", victim)
    changed = json.loads(bytes(data)) | {"decision": "allow"}
    text = json.dumps(changed, separators=(",", ":"), sort_keys=True).encode()
    gate.change("update events set bytes = ? where seq = ?", text, seq)
    try:
        report = operator.get("/v1/audit/verify").json()
    finally:
        gate.change("update events set bytes = ? where seq = ?", bytes(data), seq)
    ((following,),) = gate.select("select event_id from events where seq = ?", seq + 1)
    assert report["intact"] is False
    assert report["broken_at"] in (victim, following)
    assert operator.get("/v1/audit/verify").json()["intact"] is True


@row("admin-endpoints/status-not-audited", "events/1-status-silent")
def test_a_look_at_the_status_leaves_no_event(gate: Deployment, operator: Caller) -> None:
    before = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert operator.get("/v1/admin/status").status_code == 200
    assert gate.events(principal=f"operator:{gate.operator_name}", after=before) == []
