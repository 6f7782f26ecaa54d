"""Readiness values, and what the status says then."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.outages import Outage, alone
from tests.conformance.proxied import Proxied


@row("readiness/degraded", "failures/proxy-down-readiness")
def test_without_the_egress_proxy_it_is_degraded_and_other_actions_run(proxied: Proxied) -> None:
    outage = proxied.outage
    assert (outage.readiness.status_code, outage.readiness.json()["status"]) == (200, "degraded")
    assert outage.readiness.json()["egress_proxy"] is False
    assert [answer.status_code for answer in outage.others] == [200, 200]
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


@row("status-values/degraded")
def test_without_the_policy_engine_it_is_degraded(outage: Outage) -> None:
    """Without the key-value store no status is answered: an operator's proof could not be recorded."""
    assert outage.status["status"] == "degraded"
    assert outage.status["dependencies"] == {"redis": True, "opa": False}


@row("failures/proxy-down")
def test_without_the_egress_proxy_its_actions_fail(proxied: Proxied) -> None:
    assert (proxied.outage.call.status_code, proxied.outage.call.json()["error"]) == (502, "action_execution_failed")
    assert "the egress proxy can't be reached" in proxied.outage.reason
