"""Errors of other endpoints: one test a row."""

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


@row("other-errors/poll-401")
def test_a_poll_without_authentication(gate: Deployment, agent: Caller) -> None:
    path = f"/v1/approvals/{gate.held(agent)}/poll"
    refused(gate.client.get(path), 401)
    agent.prover = Prover()
    refused(agent.get(path), 401)


@row("other-errors/poll-404")
def test_a_poll_of_nothing(agent: Caller) -> None:
    refused(agent.get("/v1/approvals/apr_nothing/poll"), 404)


@row("other-errors/receipt-401")
def test_a_receipt_without_authentication(gate: Deployment, agent: Caller) -> None:
    receipt_id = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    refused(gate.client.get(f"/v1/receipts/{receipt_id}"), 401)
    refused(gate.admin.get(f"/v1/receipts/{receipt_id}"), 401)


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


@row("other-errors/approve-404-consumed")
def test_an_approval_is_given_once(gate: Deployment, operator: Caller) -> None:
    path = f"/v1/approvals/{gate.held(gate.agent())}/approve"
    assert operator.post(path).status_code == 200
    refused(operator.post(path), 404)


@row("other-errors/approve-404-expired")
def test_an_expired_approval_is_not_given(gate: Deployment, operator: Caller) -> None:
    approval_id = gate.held(gate.agent())
    gate.expire(approval_id)
    refused(operator.post(f"/v1/approvals/{approval_id}/approve"), 404)


@row("other-errors/approval-404-unknown")
def test_an_unknown_approval_is_not_found(operator: Caller) -> None:
    refused(operator.get("/v1/approvals/apr_nothing"), 404)


@row("other-errors/approval-404-expired")
def test_an_expired_approval_is_not_found(gate: Deployment, operator: Caller) -> None:
    approval_id = gate.held(gate.agent())
    gate.expire(approval_id)
    refused(operator.get(f"/v1/approvals/{approval_id}"), 404)


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


# ------------------------------------------------------------------------------------------------ policy


@row("other-errors/policy-404-principal")
def test_an_unknown_principal_is_not_found(operator: Caller) -> None:
    refused(operator.get("/v1/admin/policy/nobody-at-all"), 404, "principal_not_found")


@row("other-errors/policy-400-action")
def test_a_grant_of_an_unknown_action(operator: Caller) -> None:
    refused(
        operator.post("/v1/admin/policy/grant", {"principal": "clerk", "actions": ["nothing"]}), 400, "unknown_action"
    )


@row("other-errors/policy-400-input")
def test_a_change_of_policy_with_odd_input_is_refused(operator: Caller) -> None:
    for pair in ({"action_id": "", "agent_id": "a"}, {"action_id": "held_digest", "agent_id": "a\x00"}):
        refused(operator.post("/v1/admin/policy/allowlist", pair), 400, "invalid_input")
        refused(operator.delete("/v1/admin/policy/allowlist", pair), 400, "invalid_input")


@row("other-errors/policy-404-action")
def test_an_allowlist_entry_for_no_action(operator: Caller) -> None:
    pair = {"action_id": "nothing", "agent_id": "a"}
    refused(operator.post("/v1/admin/policy/allowlist", pair), 404, "action_not_found")


@row("other-errors/policy-404-entry")
def test_an_unknown_entry_is_not_found(operator: Caller) -> None:
    pair = {"action_id": "held_digest", "agent_id": "never-listed"}
    refused(operator.delete("/v1/admin/policy/allowlist", pair), 404, "allowlist_entry_not_found")


@row("other-errors/reload-500")
def test_a_reload_that_fails(gate: Deployment) -> None:
    file = gate.manifests / "broken.yaml"
    file.write_text("action_id: [")
    try:
        answer = gate.reload()
        assert (answer.status_code, answer.json()) == (500, {"error": "reload_failed"})
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    finally:
        file.unlink()
