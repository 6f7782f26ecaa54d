"""Rules that hold for the whole service."""

import socket
import ssl
from urllib.parse import urlsplit

import pytest

from tests.conformance.deployment import Deployment
from tests.conformance.marks import BOTH_MODES, ONLY_DEV, row
from tests.conformance.outages import Outage
from tests.conformance.stories import EXECUTE, Restart
from tests.support.coded import Coded
from tests.support.gateway import ANSWER_SECONDS

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


@row(
    "service/fail-closed-store",
    "dpop-rules/2-store-down",
    "failures/store-down-execute",
    "failures/store-down-leases",
    "execute-errors/503-replay_cache_unavailable",
)
def test_without_the_store_leases_are_issued_and_nothing_is_allowed(gate: Deployment) -> None:
    agent, limited = gate.agent(), gate.agent(max_calls=1)
    call = ("file_write", {"path": "closed.store", "content": "x"})
    with gate.without("store"):
        answers = [agent.execute(*call) for _ in range(3)]
        counted = limited.execute(*call)
        assert gate.lease({"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk}).status_code == 200
    assert [(one.status_code, one.json()) for one in answers] == [(503, {"error": "replay_cache_unavailable"})] * 3
    assert counted.status_code == 503
    assert counted.json()["error"] in ("replay_cache_unavailable", "budget_store_unavailable")
    assert not (gate.state / "files" / "closed.store").exists()


@row("service/fail-closed-policy", "failures/policy-down")
def test_without_the_policy_engine_nothing_is_allowed(outage: Outage) -> None:
    assert (outage.gone.status_code, outage.frozen.status_code) == (503, 503)
    assert not outage.wrote


# ------------------------------------------------------------------------------------------------ listeners


@BOTH_MODES
@row("service/two-listeners")
def test_each_socket_knows_its_own_endpoints_alone(gate: Deployment) -> None:
    with gate.over("client_socket") as client, gate.over("admin_socket") as admin:
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


@BOTH_MODES
@row("service/no-tls")
def test_it_speaks_no_tls(gate: Deployment) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if gate.is_dev:
        where = urlsplit(gate.gateway.ready["base_url"])
        plain = socket.create_connection((where.hostname, where.port), timeout=ANSWER_SECONDS)
    else:
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(ANSWER_SECONDS)
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
    assert restart.calls == [200, 403]


@row("service/store-holds-approvals")
def test_a_hold_is_approved_after_a_restart(restart: Restart) -> None:
    assert restart.approved.status_code == 200, restart.approved.text
    assert restart.polled.json()["state"] == "approved"


@row("service/store-holds-epoch")
def test_a_revocation_is_in_force_after_a_restart(restart: Restart) -> None:
    assert restart.epoch == restart.before.epoch == 1
    assert (restart.old_epoch.status_code, restart.old_epoch.json()) == (401, Coded("invalid_lease"))


@row("service/ledger-holds-events")
def test_events_are_there_after_a_restart_and_the_chain_goes_on(restart: Restart) -> None:
    (event,) = restart.found
    assert event["receipt_id"] == restart.before.result["receipt_id"]
    assert restart.chain["intact"] is True
    assert restart.chain["events_checked"] > restart.before.events


@row("service/ledger-holds-intents")
def test_an_intent_that_nobody_resolved_shows_after_a_restart(restart: Restart) -> None:
    (intent,) = restart.intents
    assert intent["action_id"] == "spin"
    assert restart.unresolved == 1
    assert restart.lost_events == []


@row("service/ledger-holds-receipts")
def test_a_receipt_is_there_after_a_restart(restart: Restart) -> None:
    assert restart.receipt["receipt_id"] == restart.before.result["receipt_id"]
    assert restart.receipt["signature_status"] == "verified"
    assert restart.receipt["provider_receipt"] == restart.before.result["output"]
