"""Client socket endpoints: one test an endpoint, by method, path and answer."""

from typing import Any

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import BOTH_MODES, row
from tests.conformance.shapes import is_id

pytestmark = BOTH_MODES


@row("client-endpoints/healthz")
def test_healthz_says_ok(gate: Deployment) -> None:
    answer = gate.client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@row("client-endpoints/readyz")
def test_readyz_names_each_dependency(gate: Deployment) -> None:
    answer = gate.ready()
    readiness: dict[str, Any] = answer.json()
    assert answer.status_code == 200
    assert readiness["status"] == "ready"
    assert all(readiness[name] is True for name in ("redis", "opa", "ledger", "approval_store"))
    assert "egress_proxy" in readiness
    assert readiness["egress_proxy"] is None
    assert readiness["actions_registered"] == len(gate.client.get("/v1/actions").json())


@row("client-endpoints/leases")
def test_a_lease_is_issued(gate: Deployment, agent: Caller) -> None:
    answer = gate.lease({"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk})
    assert answer.status_code == 200
    assert {"lease_jwt", "session_id", "lease_jti", "expires_at"} <= set(answer.json())


@row("client-endpoints/jwks")
def test_the_keys_of_leases_are_published(gate: Deployment) -> None:
    answer = gate.client.get("/.well-known/jwks.json")
    assert answer.status_code == 200
    keys = answer.json()["keys"]
    assert keys
    for key in keys:
        assert (key["kty"], key["crv"]) == ("EC", "P-256")
        assert {"kid", "x", "y"} <= set(key)
        assert "d" not in key


@row("client-endpoints/actions")
def test_the_actions_are_listed(gate: Deployment) -> None:
    answer = gate.client.get("/v1/actions")
    assert answer.status_code == 200
    assert isinstance(answer.json(), list)
    assert {"text_digest", "file_write"} <= {one["action_id"] for one in answer.json()}


@row("client-endpoints/action")
def test_one_action_is_described(gate: Deployment) -> None:
    answer = gate.client.get("/v1/actions/text_digest")
    assert (answer.status_code, answer.json()["action_id"]) == (200, "text_digest")
    answer = gate.client.get("/v1/actions/nothing")
    assert (answer.status_code, answer.json()) == (404, {"error": "action_not_found"})


@row("client-endpoints/request-schema")
def test_the_schema_of_a_request_is_shown(gate: Deployment) -> None:
    answer = gate.client.get("/v1/actions/text_digest/schema/request")
    assert answer.status_code == 200
    assert (answer.json()["type"], answer.json()["required"]) == ("object", ["text"])


@row("client-endpoints/request-schema-404")
def test_an_unknown_action_has_no_schema(gate: Deployment) -> None:
    for action in ("nothing", "schemaless"):
        assert gate.client.get(f"/v1/actions/{action}/schema/request").status_code == 404
    assert gate.client.get("/v1/actions/schemaless").status_code == 200


@row("client-endpoints/execute")
def test_a_call_is_executed(agent: Caller) -> None:
    answer = agent.execute("text_digest", {"text": "x"})
    assert answer.status_code == 200
    assert answer.json()["output"]["bytes"] == 1


@row("client-endpoints/execute-202")
def test_a_call_that_is_held_is_accepted(agent: Caller) -> None:
    answer = agent.execute("held_digest", {"text": "x"})
    assert answer.status_code == 202
    assert is_id("apr_", answer.json()["approval_id"])


@row("client-endpoints/poll")
def test_a_held_call_is_polled(gate: Deployment, agent: Caller) -> None:
    approval_id = gate.held(agent)
    answer = agent.get(f"/v1/approvals/{approval_id}/poll")
    assert answer.status_code == 200
    assert (answer.json()["approval_id"], answer.json()["state"]) == (approval_id, "pending")


@row("client-endpoints/receipt")
def test_a_receipt_is_read(agent: Caller) -> None:
    receipt_id = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    answer = agent.get(f"/v1/receipts/{receipt_id}")
    assert (answer.status_code, answer.json()["receipt_id"]) == (200, receipt_id)
