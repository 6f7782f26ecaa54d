"""Failure conditions: what still works when something does not."""

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.proxied import Proxied
from tests.support.gateway import Prover


@row("failures/store-down-leases")
def test_without_the_store_leases_are_issued(gate: Deployment, agent: Caller) -> None:
    with gate.without("store"):
        assert agent.execute("text_digest", {"text": "x"}).status_code == 503
        answer = gate.lease({"scopes": ["tools:call"], "dpop_jwk": Prover().jwk})
    assert answer.status_code == 200, answer.text


@row("failures/proxy-down")
def test_without_the_egress_proxy_its_actions_fail(proxied: Proxied) -> None:
    assert (proxied.outage.call.status_code, proxied.outage.call.json()["error"]) == (502, "action_execution_failed")
    assert "the egress proxy can't be reached" in proxied.outage.reason


@row("failures/proxy-down-readiness")
def test_without_the_egress_proxy_other_actions_run(proxied: Proxied) -> None:
    assert proxied.outage.readiness.json()["status"] == "degraded"
    assert [answer.status_code for answer in proxied.outage.others] == [200, 200]
