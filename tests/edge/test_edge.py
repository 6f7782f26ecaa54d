"""Agents on other hosts: a real edge with TLS in front of a real gateway."""

import pytest

from tests.support.edge_process import Edge
from tests.support.gateway import Gateway, Prover
from tests.support.issued_tokens import leased


@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_an_agent_with_a_token_gets_a_lease_and_calls_over_tls(before: Edge, gate: Gateway, http2: bool) -> None:
    agent = leased(before.client(http2=http2))
    called = agent.execute("text_digest", {"text": "a"})
    assert called.status_code == 200, called.text
    assert called.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
    receipt = agent.get(f"/v1/receipts/{called.json()['receipt_id']}")
    assert receipt.status_code == 200, receipt.text
    assert called.headers["x-trace-id"] == gate.events(event_type="ActionCall")[0]["trace_id"]


def test_without_a_token_there_is_no_lease(before: Edge) -> None:
    asked = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}
    answer = before.client().post("/v1/leases", json=asked)
    assert (answer.status_code, answer.json()["error"]) == (403, "identity_forbidden")
