"""Readiness values."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.outages import Outage, alone
from tests.conformance.proxied import Proxied


@row("readiness/ready")
def test_a_gateway_that_is_ready_says_so_with_200(gate: Deployment) -> None:
    answer = gate.ready()
    assert answer.json()["status"] == "ready"


@row("readiness/degraded")
def test_without_the_egress_proxy_it_is_degraded_and_200(proxied: Proxied) -> None:
    outage = proxied.outage
    assert (outage.readiness.status_code, outage.readiness.json()["status"]) == (200, "degraded")
    assert outage.readiness.json()["egress_proxy"] is False
    assert outage.later.json()["status"] == "ready"


@row("readiness/not_ready")
def test_without_a_core_dependency_it_is_not_ready_and_503(gate: Deployment, outage: Outage) -> None:
    with gate.without("store"):
        answers = {"redis": alone(gate, "redis")}
    with gate.without("ledger"):
        answers["ledger"] = alone(gate, "ledger")
    answers["opa"] = outage.readiness
    for name, answer in answers.items():
        readiness = answer.json()
        assert (answer.status_code, readiness["status"]) == (503, "not_ready")
        assert [one for one in ("redis", "opa", "ledger") if not readiness[one]] == [name]
