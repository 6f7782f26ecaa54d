"""Receipt retrieval: by agents and by operators."""

import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.support.coded import Coded


@pytest.fixture(scope="module")
def receipt_id(gate: Deployment) -> str:
    """The receipt of another lease's call."""
    return str(gate.agent().execute("text_digest", {"text": "x"}).json()["receipt_id"])


@row("receipt-retrieval/proof-bound")
def test_the_proof_is_for_this_receipt(gate: Deployment, agent: Caller, receipt_id: str) -> None:
    path = f"/v1/receipts/{receipt_id}"
    for method, other in (("GET", "/v1/receipts/rcpt_other"), ("POST", path), ("GET", "/v1/receipts/")):
        answer = gate.client.get(path, headers=agent.headers(method, other))
        assert (answer.status_code, answer.json()) == (401, Coded("invalid_dpop"))
    assert gate.client.get(path, headers=agent.headers("GET", path)).status_code == 200


@row("receipt-retrieval/any-lease")
def test_any_caller_with_a_lease_gets_it(gate: Deployment, receipt_id: str) -> None:
    bodies = [gate.agent().get(f"/v1/receipts/{receipt_id}").json() for _ in range(2)]
    assert bodies[0] == bodies[1]
    assert bodies[0]["receipt_id"] == receipt_id


@row("receipt-retrieval/operators", "admin-endpoints/receipt")
def test_operators_get_the_same_body(gate: Deployment, agent: Caller, operator: Caller, receipt_id: str) -> None:
    answers = [one.get(f"/v1/receipts/{receipt_id}") for one in (agent, operator)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].content == answers[1].content
