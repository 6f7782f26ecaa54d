"""Behaviour rules 1 to 5: drain, reload, domains, grants and the allowlist."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row, rows
from tests.conformance.stories import Drain
from tests.support.manifests import example, write_manifests


def data_of(gate: Deployment) -> dict[str, Any]:
    """The policy's data on the disk."""
    return dict(json.loads((gate.policy / "data.json").read_text()))


@contextmanager
def listed(gate: Deployment, action: str, agent: str | None = None) -> Iterator[None]:
    """A pair in the allowlist."""
    pair = {"action_id": action, "agent_id": agent or gate.principal}
    operator = gate.operator()
    answer = operator.post("/v1/admin/policy/allowlist", pair)
    assert answer.status_code == 200, answer.text
    try:
        yield
    finally:
        operator.delete("/v1/admin/policy/allowlist", pair)


# ------------------------------------------------------------------------------------------------ 1. drain


@row("behaviour/1-drain-counts")
def test_what_is_in_flight_falls_to_none(drain: Drain) -> None:
    assert drain.first.json()["in_flight_executions"] == 1
    assert drain.during["in_flight_executions"] == 1
    assert drain.idle["in_flight_executions"] == 0


# ------------------------------------------------------------------------------------------------ 2. reload


@row("behaviour/2-reload-swaps")
def test_a_reload_swaps_manifests_and_policy_as_one(gate: Deployment) -> None:
    agent = gate.agent()
    assert agent.execute("brand_new", {"text": "x"}).status_code == 404
    data = data_of(gate)
    entry = data["acl"][gate.principal]
    file = gate.manifests / "brand_new.yaml"
    write_manifests(gate.manifests, example("text_digest", action_id="brand_new"))
    try:
        changed = data["acl"] | {gate.principal: entry | {"actions": [*entry["actions"], "brand_new"]}}
        with gate.changed_policy(policy_version="conformance-2", acl=changed):
            assert agent.execute("brand_new", {"text": "x"}).status_code == 200
            event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
            assert event["policy_version"].startswith("conformance-2")
            file.unlink()
    finally:
        file.unlink(missing_ok=True)
    assert gate.reload().status_code == 200
    assert agent.execute("brand_new", {"text": "x"}).status_code == 404


BROKEN = {"a manifest": "actions/broken.yaml", "a policy": "policy/broken.rego"}


@pytest.mark.parametrize("name", BROKEN.values(), ids=BROKEN)
@row("behaviour/2-reload-keeps", "other-errors/reload-500")
def test_a_failed_reload_changes_nothing(gate: Deployment, name: str) -> None:
    agent, before = gate.agent(), gate.client.get("/v1/actions").json()
    (gate.folder / name).write_text("}:{ broken\n")
    # The valid part of it must not be accepted either.
    good = gate.manifests / "would_be_new.yaml"
    write_manifests(gate.manifests, example("text_digest", action_id="would_be_new"))
    try:
        answer = gate.reload()
        assert (answer.status_code, answer.json()) == (500, {"error": "reload_failed"})
        assert gate.client.get("/v1/actions").json() == before
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        assert agent.execute("forbidden_export", {"table": "t"}).status_code == 403
    finally:
        (gate.folder / name).unlink()
        good.unlink()
    assert gate.reload().status_code == 200


# ------------------------------------------------------------------------------------------------ 3. domains


@row("behaviour/3-domains-clear")
def test_after_a_clear_only_the_manifests_domains_count(gate: Deployment, agent: Caller, operator: Caller) -> None:
    operator.post("/v1/admin/domains", {"action_id": "any_host", "domain": "gone.gateway.invalid"})
    assert operator.delete("/v1/admin/domains/clear").status_code == 200
    assert agent.execute("any_host", {"host": "gone.gateway.invalid"}).status_code == 202
    assert agent.execute("unknown_host", {"path": "x"}).status_code == 502  # the manifest's own is not held


# ------------------------------------------------------------------------------------------------ 4. grants


@row("behaviour/4-grant-validates", "other-errors/policy-400-action")
def test_a_grant_of_an_unknown_action_writes_nothing(gate: Deployment, operator: Caller) -> None:
    before = data_of(gate)
    answer = operator.post("/v1/admin/policy/grant", {"principal": "clerk", "actions": ["file_write", "nothing"]})
    assert (answer.status_code, answer.json()["error"]) == (400, "unknown_action")
    assert data_of(gate) == before
    assert operator.get("/v1/admin/policy/clerk").json()["actions"] == ["text_digest"]


@row("behaviour/4-revoke-last")
def test_with_its_last_action_a_principal_is_gone(gate: Deployment, operator: Caller) -> None:
    entry = {"principal": "short-lived", "actions": ["text_digest", "spin"]}
    assert operator.post("/v1/admin/policy/grant", entry).status_code == 200
    assert "short-lived" in operator.get("/v1/admin/policy").json()["principals"]
    answer = operator.post("/v1/admin/policy/revoke", entry)
    assert (answer.status_code, answer.json()["actions"], answer.json()["sinks"]) == (200, [], [])
    assert "short-lived" not in operator.get("/v1/admin/policy").json()["principals"]
    assert operator.get("/v1/admin/policy/short-lived").status_code == 404
    assert "short-lived" not in data_of(gate)["acl"]


# ------------------------------------------------------------------------------------------------ 5. allowlist

ODD_PAIRS: dict[str, dict[str, Any]] = {
    "no action": {"action_id": "", "agent_id": "a"},
    "no agent": {"action_id": "held_digest", "agent_id": ""},
    "action too long": {"action_id": "a" * 257, "agent_id": "a"},
    "agent too long": {"action_id": "held_digest", "agent_id": "a" * 257},
    "a slash": {"action_id": "held/digest", "agent_id": "a"},
    "a control character": {"action_id": "held_digest", "agent_id": "a\nb"},
    "a space": {"action_id": "held_digest", "agent_id": "a b"},
    "beyond ASCII": {"action_id": "held_digest", "agent_id": "ägent"},
}


@pytest.mark.parametrize("pair", ODD_PAIRS.values(), ids=ODD_PAIRS)
@row("behaviour/5-ids-validated", "other-errors/policy-400-input")
def test_odd_ids_are_invalid_input(gate: Deployment, operator: Caller, pair: dict[str, Any]) -> None:
    before = data_of(gate)
    for method in ("POST", "DELETE"):
        answer = operator.call(method, "/v1/admin/policy/allowlist", pair)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_input"), answer.text
    assert data_of(gate) == before


@row("behaviour/5-action-exists", "other-errors/policy-404-action")
def test_the_action_must_be_registered(gate: Deployment, operator: Caller) -> None:
    answer = operator.post("/v1/admin/policy/allowlist", {"action_id": "nothing", "agent_id": gate.principal})
    assert (answer.status_code, answer.json()["error"]) == (404, "action_not_found")
    assert data_of(gate)["allowlist"] == {}


@row("behaviour/5-immediate")
def test_a_change_counts_for_the_very_next_call(gate: Deployment, agent: Caller) -> None:
    for number in range(2):
        with listed(gate, "held_digest"):
            assert agent.execute("held_digest", {"text": f"listed {number}"}).status_code == 200
        assert agent.execute("held_digest", {"text": f"not {number}"}).status_code == 202


@row("behaviour/5-last-entry")
def test_with_its_last_entry_the_key_of_the_action_is_gone(gate: Deployment, operator: Caller) -> None:
    with listed(gate, "held_digest", "first"):
        with listed(gate, "held_digest", "second"):
            assert data_of(gate)["allowlist"] == {"held_digest": {"first": True, "second": True}}
        assert data_of(gate)["allowlist"] == {"held_digest": {"first": True}}
    assert data_of(gate)["allowlist"] == {}


@rows(
    "behaviour",
    {
        "5-trust-binds": ("unknown", {"text": "x"}, "action_not_registered"),
        "5-acl-binds": ("nobodys", {"text": "x"}, "policy_denied"),
        "5-scope-binds": ("special_scope", {"text": "x"}, "policy_denied"),
        "5-sink-binds": ("other_sink", {"text": "x"}, "policy_denied"),
    },
)
def test_every_other_denial_binds(gate: Deployment, agent: Caller, case: tuple[str, Any, str]) -> None:
    action, body, code = case
    with listed(gate, action):
        answer = agent.execute(action, body)
    assert (answer.status_code, answer.json()["error"]) == (403, code)


@row("behaviour/5-budget-binds")
def test_no_call_left_is_no_call_left(gate: Deployment) -> None:
    agent = gate.agent(max_calls=1)
    with listed(gate, "held_digest"):
        assert agent.execute("held_digest", {"text": "1"}).status_code == 200
        answer = agent.execute("held_digest", {"text": "2"})
    assert (answer.status_code, answer.json()) == (403, {"error": "budget_exhausted"})
