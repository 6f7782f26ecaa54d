"""Errors of other endpoints than execute."""

import httpx
import pytest

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.stories import Strangers
from tests.support.gateway import Prover, wait_for
from tests.support.raw_http import raw, request
from tests.support.replies import Reply

LEASE = {"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}


def refused(answer: httpx.Response, status: int, code: str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert isinstance(answer.json()["error"], str)
    assert code is None or answer.json()["error"] == code


# ------------------------------------------------------------------------------------------------ leases


@row("other-errors/leases-400")
def test_a_lease_request_that_is_none(gate: Deployment) -> None:
    refused(gate.lease({}), 400)
    refused(gate.lease([]), 400)
    refused(gate.lease(LEASE | {"budgets": {"max_calls": "many"}}), 400)


@row("other-errors/leases-429")
def test_leases_beyond_the_rate_are_refused(gate: Deployment) -> None:
    """Malformed requests count as well, and are refused faster than any lease is made; a hundred wait at a time."""
    answers: list[Reply] = []
    with raw(gate.gateway.ready["client_socket"]) as line:

        def is_too_much() -> bool:
            line.send(request("POST", "/v1/leases", body=b"{}") * 100)
            answers.extend(reply for _ in range(100) if (reply := line.reply("POST")) is not None)
            return answers[-1].status == 429

        wait_for(is_too_much, "more than a second's leases in a second")
    assert {one.status for one in answers} <= {400, 429}
    assert answers[-1].json == {"error": "rate_limit_exceeded"}
    assert int(answers[-1].headers["retry-after"]) >= 1


@row("other-errors/leases-503-identity")
def test_no_identity_to_be_had(unknown: Strangers) -> None:
    refused(unknown.tcp, 503, "identity_provider_unavailable")


# ------------------------------------------------------------------------------------------------ poll, receipt


@row("other-errors/poll-404")
def test_a_poll_of_nothing(agent: Caller) -> None:
    refused(agent.get("/v1/approvals/apr_nothing/poll"), 404)


@row("other-errors/receipt-404")
def test_an_unknown_receipt_is_not_found(agent: Caller, operator: Caller) -> None:
    for who in (agent, operator):
        refused(who.get("/v1/receipts/rcpt_nothing"), 404)


@row("other-errors/receipt-503")
def test_a_ledger_that_can_not_be_read(gate: Deployment, agent: Caller) -> None:
    receipt_id = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    with gate.without_table("receipts"):
        answer = agent.get(f"/v1/receipts/{receipt_id}")
    refused(answer, 503)
    assert answer.json() == {"error": "ledger_unavailable"}
    assert agent.get(f"/v1/receipts/{receipt_id}").status_code == 200


# ------------------------------------------------------------------------------------------------ approvals


@row("other-errors/approve-404-unknown")
def test_an_unknown_approval_is_not_approved(operator: Caller) -> None:
    refused(operator.post("/v1/approvals/apr_nothing/approve"), 404)


# ------------------------------------------------------------------------------------------------ domains


@pytest.mark.parametrize(
    "domain", ["", "localhost", "127.0.0.1", "::1", "a b", "no-dot", "*.com", "http://a.test", "a.test/x", "a..test"]
)
@row("other-errors/domains-400")
def test_a_domain_that_is_none_is_refused(operator: Caller, domain: str) -> None:
    refused(operator.post("/v1/admin/domains", {"action_id": "any_host", "domain": domain}), 400, "invalid_domain")


@row("other-errors/domains-409")
def test_a_domain_that_is_there_is_a_conflict(operator: Caller) -> None:
    rule = {"action_id": "any_host", "domain": "twice.gateway.invalid"}
    assert operator.post("/v1/admin/domains", rule).status_code == 200
    try:
        refused(operator.post("/v1/admin/domains", rule), 409, "domain_already_exists")
    finally:
        operator.delete("/v1/admin/domains/clear")
