"""Admin socket endpoints: policy ACL and approval allowlist."""

from collections.abc import Iterator
from itertools import chain

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


@row(
    "admin-endpoints/policy",
    *(f"policy-acl/{name}" for name in ("actions", "sinks", "policy_version", "principals")),
)
def test_the_whole_acl_is_shown(gate: Deployment, operator: Caller) -> None:
    answer = operator.get("/v1/admin/policy")
    assert answer.status_code == 200
    version, principals = answer.json()["policy_version"], answer.json()["principals"]
    assert isinstance(version, str)
    assert version
    assert (principals["clerk"]["actions"], principals["clerk"]["sinks"]) == (["text_digest"], [])
    assert all(isinstance(entry[name], list) for entry in principals.values() for name in ("actions", "sinks"))
    assert "text_digest" in principals[gate.principal]["actions"]
    assert "fs_write" in principals[gate.principal]["sinks"]


@row("admin-endpoints/policy-one", "policy-acl/risk_breakdown", "other-errors/policy-404-principal")
def test_the_actions_of_one_principal_are_shown(gate: Deployment, operator: Caller) -> None:
    answer = operator.get("/v1/admin/policy/clerk")
    assert answer.status_code == 200
    policy = answer.json()
    assert (policy["principal"], policy["actions"], policy["sinks"]) == ("clerk", ["text_digest"], [])
    assert policy["risk_breakdown"] == {"low": ["text_digest"], "medium": [], "high": [], "critical": []}
    mine = operator.get(f"/v1/admin/policy/{gate.principal}").json()
    assert sorted(chain.from_iterable(mine["risk_breakdown"].values())) == sorted(mine["actions"])
    assert "payment_transfer" in mine["risk_breakdown"]["critical"]
    answer = operator.get("/v1/admin/policy/nobody-at-all")
    assert (answer.status_code, answer.json()["error"]) == (404, "principal_not_found")


@row("admin-endpoints/policy-grant", "policy-acl/sinks-derived")
def test_a_grant_allows_an_action_and_its_sinks_which_can_not_be_set(operator: Caller) -> None:
    grant = {"principal": WHO, "actions": ["http_fetch", "text_digest"]}
    answer = operator.post("/v1/admin/policy/grant", grant)
    assert answer.status_code == 200, answer.text
    policy = answer.json()
    assert (policy["principal"], sorted(policy["actions"]), policy["sinks"]) == (
        WHO, ["http_fetch", "text_digest"], ["http_read"],
    )  # fmt: skip
    answer = operator.post("/v1/admin/policy/grant", grant | {"sinks": ["mail_send"]})
    assert answer.status_code == 400 or "mail_send" not in answer.json()["sinks"]
    assert operator.get(f"/v1/admin/policy/{WHO}").json()["sinks"] == ["http_read"]


@row("admin-endpoints/policy-revoke")
def test_a_revocation_takes_an_action_away(operator: Caller) -> None:
    operator.post("/v1/admin/policy/grant", {"principal": WHO, "actions": ["http_fetch", "text_digest"]})
    answer = operator.post("/v1/admin/policy/revoke", {"principal": WHO, "actions": ["http_fetch"]})
    assert answer.status_code == 200, answer.text
    policy = answer.json()
    assert (policy["principal"], policy["actions"], policy["sinks"]) == (WHO, ["text_digest"], [])


@row("admin-endpoints/allowlist-add", "admin-endpoints/allowlist-remove", "other-errors/policy-404-entry")
def test_the_allowlist_takes_a_pair_and_gives_it_up_once(operator: Caller) -> None:
    for change in (operator.post, operator.delete):
        answer = change("/v1/admin/policy/allowlist", PAIR)
        assert answer.status_code == 200, answer.text
        assert answer.json()["ok"] is True
        assert PAIR.items() <= answer.json().items()
    answer = operator.delete("/v1/admin/policy/allowlist", PAIR)
    assert (answer.status_code, answer.json()["error"]) == (404, "allowlist_entry_not_found")
