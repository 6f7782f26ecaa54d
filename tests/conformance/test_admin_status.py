"""Admin status: the facts of the running gateway."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import BOTH_MODES, row, rows
from tests.conformance.shapes import is_integer

pytestmark = BOTH_MODES

Status = dict[str, Any]


@pytest.fixture(scope="module")
def status(gate: Deployment) -> Status:
    """One look."""
    answer = gate.operator().get("/v1/admin/status")
    assert answer.status_code == 200
    return dict(answer.json())


@rows(
    "admin-status",
    {
        "status": lambda one: one["status"] in ("ok", "degraded", "draining"),
        "version": lambda one: isinstance(one["version"], str) and one["version"],
        "revocation_epoch": lambda one: is_integer(one["revocation_epoch"]),
        "draining": lambda one: one["draining"] is False,
        "in_flight_executions": lambda one: is_integer(one["in_flight_executions"]),
        "dependencies": lambda one: one["dependencies"] == {"redis": True, "opa": True},
        "webhooks": lambda one: one["webhooks"] == {"active": False, "pending_deliveries": 0},
        "unresolved_intents": lambda one: is_integer(one["unresolved_intents"]),
    },
    {"webhooks": ["events/3-webhooks-off"]},
)
def test_the_status_has_each_member(status: Status, case: Callable[[Status], bool]) -> None:
    assert case(status)


@row("admin-status/uptime_seconds")
def test_the_uptime_of_the_status_grows(gate: Deployment, status: Status) -> None:
    assert is_integer(status["uptime_seconds"])
    assert gate.status()["uptime_seconds"] >= status["uptime_seconds"]


@row("admin-status/actions_registered", "admin-endpoints/status")
def test_the_status_counts_the_actions(gate: Deployment, status: Status) -> None:
    assert status["actions_registered"] == len(gate.client.get("/v1/actions").json())


@row("admin-status/pending_approvals")
def test_the_status_counts_the_holds(gate: Deployment) -> None:
    assert gate.operator().post("/v1/admin/revoke-all").status_code == 200  # no earlier hold can expire meanwhile
    before = gate.status()["pending_approvals"]
    approval_id = gate.held(gate.agent(), body={"text": "counted"})
    assert gate.status()["pending_approvals"] == before + 1
    assert gate.operator().post(f"/v1/approvals/{approval_id}/deny").status_code == 200
    assert gate.status()["pending_approvals"] == before
