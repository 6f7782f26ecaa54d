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


@row("receipt-retrieval/any-lease", "receipt-retrieval/operators", "admin-endpoints/receipt")
def test_any_lease_and_operators_get_the_same_body(gate: Deployment, operator: Caller, receipt_id: str) -> None:
    answers = [one.get(f"/v1/receipts/{receipt_id}") for one in (gate.agent(), gate.agent(), operator)]
    assert [one.status_code for one in answers] == [200] * 3
    assert answers[0].content == answers[1].content == answers[2].content
    assert answers[0].json()["receipt_id"] == receipt_id
