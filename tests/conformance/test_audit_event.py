"""Audit event: what GET /v1/audit/events shows."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.conformance.shapes import seconds_of
from tests.conformance.stories import Drain

Event = dict[str, Any]


@pytest.fixture(scope="module")
def answer(gate: Deployment) -> dict[str, Any]:
    """An allowed call's answer."""
    return dict(gate.agent().execute("text_digest", {"text": "x"}).json())


@pytest.fixture(scope="module")
def event(gate: Deployment, answer: dict[str, Any]) -> Event:
    """Its event."""
    (record,) = gate.events(trace_id=answer["trace_id"])
    return record


@rows(
    "audit-event",
    {
        "action_id": lambda one: one["action_id"] == "text_digest",
        "session_id": lambda one: one["session_id"].startswith("ses_"),
        "timestamp": lambda one: seconds_of(one["timestamp"]) > 0,
    },
)
def test_the_event_has_it(event: Event, case: Callable[[Event], bool]) -> None:
    assert case(event)


@row("audit-event/trace_id")
def test_the_trace_is_that_of_the_answer(event: Event, answer: dict[str, Any]) -> None:
    assert event["trace_id"] == answer["trace_id"]


@row("audit-event/principal")
def test_the_principal_is_the_callers(gate: Deployment, event: Event) -> None:
    assert event["principal"] == gate.principal


@rows(
    "audit-event",
    {
        "decision-allow": ("text_digest", {"text": "x"}, "allow"),
        "decision-deny": ("forbidden_export", {"table": "t"}, "deny"),
        "decision-error": ("little_fuel", {"text": "x"}, "error"),
        "decision-pending_approval": ("held_digest", {"text": "x"}, "pending_approval"),
    },
)
def test_the_decision_is_in_the_event(gate: Deployment, case: tuple[str, Any, str]) -> None:
    action, body, decision = case
    agent = gate.agent()
    agent.execute(action, body)
    (record,) = gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert record["decision"] == decision


@row("audit-event/prev_hash", "events/1-chained")
def test_the_hash_is_that_of_the_event_before(gate: Deployment, event: Event) -> None:
    rows_ = gate.select("select event_id, bytes from events order by seq")
    place = [event_id for event_id, _ in rows_].index(event["event_id"])
    before = hashlib.sha256(bytes(rows_[place - 1][1])).hexdigest()
    assert event["prev_hash"].removeprefix("sha256:") == before


def acts(gate: Deployment, method: str, path: str, body: Any = None) -> list[Event]:
    """The events that one act of an operator leaves; the query itself leaves none, and holds may expire meanwhile."""
    mine = {"principal": f"operator:{gate.operator_name}", "limit": 20}
    known = {one["event_id"] for one in gate.events(**mine)}
    answer = gate.operator().call(method, path, body)
    assert answer.status_code == 200, answer.text
    return [one for one in gate.events(**mine) if one["event_id"] not in known]


@row("audit-event/type-AdminDrain", "events/1-AdminDrain")
def test_a_drain_is_audited(drain: Drain) -> None:
    assert len(drain.events) == 2
    assert {one["principal"] for one in drain.events} == {f"operator:{drain.operator_name}"}


@row("audit-event/type-AdminReload", "events/1-AdminReload")
def test_a_reload_is_audited(gate: Deployment) -> None:
    (record,) = acts(gate, "POST", "/v1/admin/reload")
    assert record["event_type"] == "AdminReload"


@row("audit-event/revoke-all", "events/1-revoke-all")
def test_revoke_all_is_audited(gate: Deployment) -> None:
    (record,) = acts(gate, "POST", "/v1/admin/revoke-all")
    assert (record["event_type"], record["decision"]) == ("AdminRevokeAll", "allow")


@row("audit-event/receipt-keys", "events/1-receipt-keys")
def test_a_look_at_the_receipt_keys_is_audited(gate: Deployment) -> None:
    (record,) = acts(gate, "GET", "/v1/receipt-keys")
    assert (record["event_type"], record["decision"]) == ("ReceiptKeysRead", "allow")


@row("audit-event/allowlist", "events/1-allowlist")
def test_a_change_of_the_allowlist_is_audited(gate: Deployment) -> None:
    pair = {"action_id": "held_digest", "agent_id": "auditor"}
    (added,) = acts(gate, "POST", "/v1/admin/policy/allowlist", pair)
    (removed,) = acts(gate, "DELETE", "/v1/admin/policy/allowlist", pair)
    assert [one["event_type"] for one in (added, removed)] == ["PolicyAllowlistAdded", "PolicyAllowlistRemoved"]
    assert added["action_id"] == "held_digest"
