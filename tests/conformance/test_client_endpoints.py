"""Client socket endpoints: method, path and answer."""

from typing import Any

from tests.conformance.deployment import Deployment
from tests.conformance.marks import BOTH_MODES, row

pytestmark = BOTH_MODES


@row("client-endpoints/healthz")
def test_healthz_says_ok(gate: Deployment) -> None:
    answer = gate.client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@row("client-endpoints/readyz", "readiness/ready", "status-values/ok")
def test_readyz_names_each_dependency(gate: Deployment) -> None:
    answer = gate.ready()
    readiness: dict[str, Any] = answer.json()
    assert answer.status_code == 200
    assert readiness["status"] == "ready"
    assert all(readiness[name] is True for name in ("redis", "opa", "ledger", "approval_store"))
    assert "egress_proxy" in readiness
    assert readiness["egress_proxy"] is None
    assert readiness["actions_registered"] == len(gate.client.get("/v1/actions").json())
    assert gate.status()["status"] == "ok"


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
