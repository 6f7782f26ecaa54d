"""Audit event: what GET /v1/audit/events shows."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
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


@row("audit-event/trace_id", "audit-event/principal")
def test_the_event_has_the_answers_trace_and_the_callers_principal(
    gate: Deployment, event: Event, answer: dict[str, Any]
) -> None:
    assert (event["trace_id"], event["principal"]) == (answer["trace_id"], gate.principal)


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


ACTS = {
    "type-AdminReload": ("POST", "/v1/admin/reload", "AdminReload"),
    "revoke-all": ("POST", "/v1/admin/revoke-all", "AdminRevokeAll"),
    "receipt-keys": ("GET", "/v1/receipt-keys", "ReceiptKeysRead"),
}


@rows("audit-event", ACTS, {name: [f"events/1-{name.removeprefix('type-')}"] for name in ACTS})
def test_an_act_of_an_operator_is_audited(gate: Deployment, case: tuple[str, str, str]) -> None:
    method, path, kind = case
    (record,) = acts(gate, method, path)
    assert (record["event_type"], record["decision"]) == (kind, "allow")


@row("audit-event/allowlist", "events/1-allowlist")
def test_a_change_of_the_allowlist_is_audited(gate: Deployment) -> None:
    pair = {"action_id": "held_digest", "agent_id": "auditor"}
    (added,) = acts(gate, "POST", "/v1/admin/policy/allowlist", pair)
    (removed,) = acts(gate, "DELETE", "/v1/admin/policy/allowlist", pair)
    assert [one["event_type"] for one in (added, removed)] == ["PolicyAllowlistAdded", "PolicyAllowlistRemoved"]
    assert added["action_id"] == "held_digest"


@row("events/1-one-per-decision")
def test_each_decision_leaves_one_event(gate: Deployment, agent: Caller) -> None:
    for action, body in (
        ("text_digest", {"text": "x"}), ("forbidden_export", {"table": "t"}), ("held_digest", {"text": "x"}),
        ("little_fuel", {"text": "x"}), ("nothing", {}), ("text_digest", {"text": 1}),
    ):  # fmt: skip
        agent.execute(action, body)
    events = gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert [one["decision"] for one in events] == ["deny", "deny", "error", "pending_approval", "deny", "allow"]
