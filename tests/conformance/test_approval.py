"""Approval: the agent's view, the operators' item and detail."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row, rows
from tests.conformance.shapes import is_id, is_sha256, seconds_of
from tests.support.manifests import example, write_manifests

View = dict[str, Any]
PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


@pytest.fixture(scope="module")
def holder(gate: Deployment) -> Caller:
    """The agent whose call is held."""
    return gate.agent(max_calls=5)


@pytest.fixture(scope="module")
def approval_id(gate: Deployment, holder: Caller) -> str:
    """A payment that waits."""
    return gate.held(holder, "payment_transfer", PAYMENT)


@pytest.fixture(scope="module")
def detail(gate: Deployment, approval_id: str) -> View:
    """The approval as an operator reads it."""
    answer = gate.operator().get(f"/v1/approvals/{approval_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture(scope="module")
def item(gate: Deployment, approval_id: str) -> View:
    """Its row in the operators' list."""
    listed = gate.operator().get("/v1/approvals").json()["approvals"]
    return next(one for one in listed if one["approval_id"] == approval_id)


@rows(
    "approval",
    {
        "item-approval_id": lambda one: is_id("apr_", one["approval_id"]),
        "item-action_id": lambda one: one["action_id"] == "payment_transfer",
        "item-state": lambda one: one["state"] == "pending",
    },
)
def test_the_item_has_the_field(item: View, case: Callable[[View], bool]) -> None:
    assert case(item)


@rows(
    "approval",
    {
        "detail-lifecycle": lambda one: (
            one["state"] == "pending" and seconds_of(one["created_at"]) > 0 and one["session_id"].startswith("ses_")
        ),
        "detail-action_version": lambda one: one["action_version"] == "1.0.0",
        "detail-risk_level": lambda one: one["risk_level"] == "critical",
        "detail-targets": lambda one: one["approved_targets"] == ["POST http://upstream.gateway.test/v1/transfers"],
        "detail-egress-profile": lambda one: one["approved_egress"]["profile"] == "direct_allowlist",
        "detail-budget-snapshot": lambda one: isinstance(one["budget_snapshot"]["calls_remaining"], int),
        "detail-verifier_kind": lambda one: one["verifier_kind"] == "http_status",
        "detail-provider_module_digest": lambda one: is_sha256(one["provider_module_digest"]),
        "detail-plan_hash": lambda one: is_sha256(one["plan_hash"]),
        "detail-expiry": lambda one: seconds_of(one["expires_at"]) > seconds_of(one["created_at"]),
    },
)
def test_the_detail_has_it(detail: View, case: Callable[[View], bool]) -> None:
    assert case(detail)


@row("approval/detail-secret-names")
def test_the_detail_names_secrets_and_tells_none(gate: Deployment, detail: View) -> None:
    assert detail["approved_secrets"] == ["bank_token"]
    assert json.loads(gate.secrets.read_text())["bank_token"] not in str(detail)


@row("approval/stored-plan-runs")
def test_the_stored_plan_runs_whatever_the_manifest_says_by_then(gate: Deployment) -> None:
    approval_id = gate.held(gate.agent(), "held_digest", {"text": "as it was"})
    planned = gate.operator().get(f"/v1/approvals/{approval_id}").json()
    file = gate.manifests / "held_digest.yaml"
    before = file.read_text()
    other = example(
        "text_digest", action_id="held_digest", risk_level="critical", version="2.0.0", verifier_kind="none",
        resource_limits={"fuel": 1},
    )  # fmt: skip
    try:
        write_manifests(gate.manifests, other)
        assert gate.reload().status_code == 200
        assert gate.client.get("/v1/actions/held_digest").json()["version"] == "2.0.0"
        approved = gate.operator().post(f"/v1/approvals/{approval_id}/approve")
    finally:
        file.write_text(before)
        gate.reload()
    assert approved.status_code == 200, approved.text
    assert approved.json()["verification_outcome"] == "unverifiable_declared"
    event = gate.events(trace_id=planned["trace_id"])[0]
    assert event["action_version"] == planned["action_version"] == "1.0.0"


@row("poll/own-session", "approval/bound-to-session", "other-errors/poll-403")
def test_the_session_of_the_lease_must_be_that_of_the_approval(gate: Deployment) -> None:
    holder, other = gate.agent(), gate.agent()
    approval_id = gate.held(holder)
    assert holder.get(f"/v1/approvals/{approval_id}/poll").status_code == 200
    refused = other.get(f"/v1/approvals/{approval_id}/poll")
    assert (refused.status_code, set(refused.json())) == (403, {"error"})
    again = gate.agent()
    again.prover = holder.prover  # the same key, and another lease
    assert gate.client.get(
        f"/v1/approvals/{approval_id}/poll", headers=again.headers("GET", f"/v1/approvals/{approval_id}/poll")
    ).status_code in (401, 403)
