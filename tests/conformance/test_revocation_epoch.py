"""Revocation epoch: a number that leases and grants carry."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import is_integer
from tests.support.coded import Coded


@row("revocation-epoch/non-negative")
def test_it_is_a_whole_number(gate: Deployment) -> None:
    assert is_integer(gate.operator().get("/v1/admin/epoch").json()["current_epoch"])


@row("revocation-epoch/carried")
def test_a_lease_carries_it_and_is_invalid_under_another(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    assert agent.epoch == operator.get("/v1/admin/epoch").json()["current_epoch"]
    assert operator.post("/v1/admin/revoke-all").status_code == 200
    answer = agent.execute("text_digest", {"text": "x"})
    assert (answer.status_code, answer.json()) == (401, Coded("invalid_lease"))
