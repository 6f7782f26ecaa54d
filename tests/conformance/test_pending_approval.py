"""Pending approval response: the 202 of execute."""

from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import is_id, is_sha256


@pytest.fixture(scope="module")
def pending(gate: Deployment) -> dict[str, Any]:
    """One held call."""
    answer = gate.agent().execute("held_digest", {"text": "pending"})
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


@row("pending-approval/request_hash")
def test_it_has_the_hash_of_the_request(gate: Deployment, pending: dict[str, Any]) -> None:
    assert is_sha256(pending["request_hash"])
    detail = gate.operator().get(f"/v1/approvals/{pending['approval_id']}").json()
    assert detail["request_hash"] == pending["request_hash"]


@row("pending-approval/trace_id", "pending-approval/decision", "pending-approval/approval_id")
def test_it_names_the_approval_and_the_trace_of_its_event(gate: Deployment, pending: dict[str, Any]) -> None:
    assert pending["decision"] == "pending_approval"
    assert is_id("apr_", pending["approval_id"])
    (event,) = gate.events(trace_id=pending["trace_id"])
    assert (event["decision"], event["approval_id"]) == ("pending_approval", pending["approval_id"])
