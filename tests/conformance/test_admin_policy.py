"""Admin socket endpoints: policy ACL and approval allowlist."""

from collections.abc import Iterator

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row

PAIR = {"action_id": "held_digest", "agent_id": "listed-agent"}
WHO = "granted-agent"


@pytest.fixture(scope="module", autouse=True)
def clean(gate: Deployment) -> Iterator[None]:
    """The policy's data afterwards is what it was."""
    file = gate.policy / "data.json"
    before = file.read_text()
    yield
    file.write_text(before)
    assert gate.reload().status_code == 200


@row("admin-endpoints/policy")
def test_the_whole_acl_is_shown(gate: Deployment, operator: Caller) -> None:
    answer = operator.get("/v1/admin/policy")
    assert answer.status_code == 200
    assert isinstance(answer.json()["policy_version"], str)
    clerk = answer.json()["principals"]["clerk"]
    assert (clerk["actions"], clerk["sinks"]) == (["text_digest"], [])


@row("admin-endpoints/policy-one")
def test_the_actions_of_one_principal_are_shown(operator: Caller) -> None:
    answer = operator.get("/v1/admin/policy/clerk")
    assert answer.status_code == 200
    policy = answer.json()
    assert (policy["principal"], policy["actions"], policy["sinks"]) == ("clerk", ["text_digest"], [])
    assert policy["risk_breakdown"] == {"low": ["text_digest"], "medium": [], "high": [], "critical": []}
    answer = operator.get("/v1/admin/policy/nobody-at-all")
    assert (answer.status_code, answer.json()["error"]) == (404, "principal_not_found")


@row("admin-endpoints/policy-grant")
def test_a_grant_allows_an_action(operator: Caller) -> None:
    answer = operator.post("/v1/admin/policy/grant", {"principal": WHO, "actions": ["http_fetch", "text_digest"]})
    assert answer.status_code == 200, answer.text
    policy = answer.json()
    assert (policy["principal"], sorted(policy["actions"]), policy["sinks"]) == (
        WHO, ["http_fetch", "text_digest"], ["http_read"],
    )  # fmt: skip
    assert operator.get(f"/v1/admin/policy/{WHO}").json()["sinks"] == ["http_read"]


@row("admin-endpoints/policy-revoke")
def test_a_revocation_takes_an_action_away(operator: Caller) -> None:
    operator.post("/v1/admin/policy/grant", {"principal": WHO, "actions": ["http_fetch", "text_digest"]})
    answer = operator.post("/v1/admin/policy/revoke", {"principal": WHO, "actions": ["http_fetch"]})
    assert answer.status_code == 200, answer.text
    policy = answer.json()
    assert (policy["principal"], policy["actions"], policy["sinks"]) == (WHO, ["text_digest"], [])


@row("admin-endpoints/allowlist-add")
def test_the_allowlist_takes_a_pair(operator: Caller) -> None:
    answer = operator.post("/v1/admin/policy/allowlist", PAIR)
    assert answer.status_code == 200, answer.text
    assert answer.json()["ok"] is True
    assert PAIR.items() <= answer.json().items()


@row("admin-endpoints/allowlist-remove")
def test_the_allowlist_gives_a_pair_up(operator: Caller) -> None:
    operator.post("/v1/admin/policy/allowlist", PAIR)
    answer = operator.delete("/v1/admin/policy/allowlist", PAIR)
    assert answer.status_code == 200, answer.text
    assert answer.json()["ok"] is True
    assert PAIR.items() <= answer.json().items()
    assert operator.delete("/v1/admin/policy/allowlist", PAIR).status_code == 404
