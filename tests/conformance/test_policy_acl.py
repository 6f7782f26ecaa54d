"""Policy ACL: who may do what."""

from itertools import chain
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows

Acl = dict[str, Any]


@pytest.fixture(scope="module")
def acl(gate: Deployment) -> Acl:
    """All of it."""
    answer = gate.operator().get("/v1/admin/policy")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@rows("policy-acl", {"actions": "actions", "sinks": "sinks"})
def test_each_principal_has_it(gate: Deployment, acl: Acl, case: str) -> None:
    assert all(isinstance(entry[case], list) for entry in acl["principals"].values())
    assert {"actions": "text_digest", "sinks": "fs_write"}[case] in acl["principals"][gate.principal][case]


@row("policy-acl/sinks-derived")
def test_sinks_follow_from_the_actions_and_can_not_be_set(gate: Deployment) -> None:
    operator = gate.operator()
    try:
        grant = {"principal": "deriver", "actions": ["http_fetch", "file_write"]}
        granted = operator.post("/v1/admin/policy/grant", grant)
        assert granted.status_code == 200, granted.text
        assert granted.json()["sinks"] == ["fs_write", "http_read"]
        set_ = operator.post("/v1/admin/policy/grant", grant | {"sinks": ["mail_send"]})
        assert set_.status_code == 400 or "mail_send" not in set_.json()["sinks"]
        shown = operator.get("/v1/admin/policy/deriver").json()
        assert shown["sinks"] == ["fs_write", "http_read"]
    finally:
        operator.post("/v1/admin/policy/revoke", {"principal": "deriver", "actions": ["http_fetch", "file_write"]})


@row("policy-acl/policy_version")
def test_the_whole_has_a_version(acl: Acl) -> None:
    assert isinstance(acl["policy_version"], str)
    assert acl["policy_version"]


@row("policy-acl/principals")
def test_the_whole_maps_principals_to_entries(gate: Deployment, acl: Acl) -> None:
    assert {gate.principal, "clerk"} <= set(acl["principals"])
    assert acl["principals"]["clerk"]["actions"] == ["text_digest"]


@row("policy-acl/risk_breakdown")
def test_one_principals_view_sorts_its_actions_by_risk(gate: Deployment) -> None:
    view = gate.operator().get(f"/v1/admin/policy/{gate.principal}").json()
    assert set(view["risk_breakdown"]) == {"low", "medium", "high", "critical"}
    assert sorted(chain.from_iterable(view["risk_breakdown"].values())) == sorted(view["actions"])
    assert "text_digest" in view["risk_breakdown"]["low"]
    assert "payment_transfer" in view["risk_breakdown"]["critical"]
