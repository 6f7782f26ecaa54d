"""Readiness values."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.stories import Outage


@row("readiness/ready")
def test_ready_is_200(gate: Deployment) -> None:
    answer = gate.client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ready"


@row("readiness/not_ready")
def test_without_a_core_dependency_it_is_not_ready_and_503(gate: Deployment, outage: Outage) -> None:
    with gate.without("store"):
        answers = {"redis": gate.client.get("/readyz")}
    with gate.without("ledger"):
        answers["ledger"] = gate.client.get("/readyz")
    answers["opa"] = outage.readiness
    for name, answer in answers.items():
        found = answer.json()
        assert (answer.status_code, found["status"]) == (503, "not_ready")
        assert [one for one in ("redis", "opa", "ledger") if not found[one]] == [name]
