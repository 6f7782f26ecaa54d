"""Rules that hold for the whole service."""

import socket
import ssl
from urllib.parse import urlsplit

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import ONLY_DEV, row
from tests.conformance.stories import EXECUTE, Outage, Restart

BODY = {"text": "x"}
CLIENT_ONLY = [
    ("POST", "/v1/leases"), ("GET", "/.well-known/jwks.json"), ("POST", EXECUTE), ("GET", "/v1/approvals/apr_x/poll"),
]  # fmt: skip
ADMIN_ONLY = [
    ("GET", "/v1/approvals"), ("POST", "/v1/approvals/apr_x/approve"), ("GET", "/v1/audit/events"),
    ("GET", "/v1/admin/status"), ("POST", "/v1/admin/drain"), ("GET", "/metrics"), ("GET", "/v1/receipt-keys"),
    ("GET", "/v1/admin/policy"), ("GET", "/v1/admin/domains"),
]  # fmt: skip


# ------------------------------------------------------------------------------------------------ fail-closed


@row("service/fail-closed-store")
def test_without_the_store_nothing_is_allowed(gate: Deployment) -> None:
    agent = gate.agent()
    with gate.without("store"):
        answers = [agent.execute("file_write", {"path": "closed.store", "content": "x"}) for _ in range(3)]
    assert {one.status_code for one in answers} == {503}
    assert not (gate.state / "files" / "closed.store").exists()


@row("service/fail-closed-policy")
def test_without_the_policy_engine_nothing_is_allowed(gate: Deployment, outage: Outage) -> None:
    assert (outage.gone.status_code, outage.frozen.status_code) == (503, 503)
    assert not (gate.state / "files" / "closed.policy").exists()


@row("service/fail-closed-clock")
def test_with_a_wrong_clock_nothing_is_allowed(restart: Restart) -> None:
    assert restart.wrong_clock.status_code == 503


# ------------------------------------------------------------------------------------------------ listeners


@row("service/two-listeners")
def test_each_socket_knows_its_own_endpoints_alone(gate: Deployment) -> None:
    client, admin = (gate.gateway.over(name) for name in ("client_socket", "admin_socket"))
    for method, path in CLIENT_ONLY:
        assert client.request(method, path).status_code != 404
        assert admin.request(method, path).status_code == 404
    for method, path in ADMIN_ONLY:
        assert admin.request(method, path).status_code == 401
        assert client.request(method, path).status_code == 404


@ONLY_DEV
@row("service/merged-in-dev")
def test_one_address_serves_both(gate: Deployment) -> None:
    for method, path in CLIENT_ONLY + ADMIN_ONLY:
        assert gate.client.request(method, path).status_code != 404
    agent = gate.agent()
    receipt_id = agent.execute("text_digest", BODY).json()["receipt_id"]
    for who in (agent, gate.operator()):
        assert who.get(f"/v1/receipts/{receipt_id}").status_code == 200


@row("service/no-tls")
def test_it_speaks_no_tls(gate: Deployment) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if gate.is_dev:
        where = urlsplit(gate.gateway.ready["base_url"])
        plain = socket.create_connection((where.hostname, where.port), timeout=10)
    else:
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(10)
        plain.connect(gate.gateway.ready["client_socket"])
    with plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain, server_hostname="gateway.test")


# ------------------------------------------------------------------------------------------------ what is kept where


@row("service/store-holds-replay-cache")
def test_a_used_proof_is_used_after_a_restart(restart: Restart) -> None:
    assert (restart.replayed.status_code, restart.replayed.json()) == (401, {"error": "replay_detected"})


@row("service/store-holds-budgets")
def test_a_spent_budget_is_spent_after_a_restart(restart: Restart) -> None:
    """Three calls: one was answered before, one is held."""
    codes = [restart.agent.execute("text_digest", {"text": str(number)}).status_code for number in range(2)]
    assert codes == [200, 403]


@row("service/store-holds-approvals")
def test_a_hold_is_approved_after_a_restart(restart: Restart) -> None:
    answer = restart.gate.operator().post(f"/v1/approvals/{restart.approval_id}/approve")
    assert answer.status_code == 200, answer.text
    assert restart.agent.get(f"/v1/approvals/{restart.approval_id}/poll").json()["state"] == "approved"


@row("service/store-holds-epoch")
def test_a_revocation_is_in_force_after_a_restart(restart: Restart) -> None:
    assert restart.gate.operator().get("/v1/admin/epoch").json()["current_epoch"] == restart.epoch == 1
    answer = restart.old_epoch.execute("text_digest", BODY)
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_lease"})


@row("service/ledger-holds-events")
def test_events_are_there_after_a_restart_and_the_chain_goes_on(restart: Restart) -> None:
    (event,) = restart.gate.events(trace_id=restart.result["trace_id"])
    assert event["receipt_id"] == restart.result["receipt_id"]
    found = restart.gate.operator().get("/v1/audit/verify").json()
    assert found["intact"] is True
    assert found["events_checked"] > restart.events


@row("service/ledger-holds-intents")
def test_an_intent_that_nobody_resolved_shows_after_a_restart(restart: Restart) -> None:
    answer = restart.gate.operator().get("/v1/admin/intents")
    (intent,) = answer.json()["intents"]
    assert intent["action_id"] == "spin"
    assert restart.gate.status()["unresolved_intents"] == 1
    assert restart.gate.events(session_id=restart.lost_session, event_type="ActionCall") == []


@row("service/ledger-holds-receipts")
def test_a_receipt_is_there_after_a_restart(restart: Restart) -> None:
    receipt = restart.gate.receipt(restart.result["receipt_id"])
    assert receipt["signature_status"] == "verified"
    assert receipt["provider_receipt"] == restart.result["output"]
