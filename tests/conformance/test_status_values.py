"""Admin status values."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.outages import Outage


@row("status-values/ok")
def test_a_gateway_that_is_well_says_ok(gate: Deployment) -> None:
    gate.ready()
    assert gate.status()["status"] == "ok"


@row("status-values/degraded")
def test_without_the_policy_engine_it_is_degraded(outage: Outage) -> None:
    """Without the key-value store no status is answered: an operator's proof could not be recorded."""
    assert outage.status["status"] == "degraded"
    assert outage.status["dependencies"] == {"redis": True, "opa": False}
