"""Calls through the running gateway: what each row of the execute table answers, and the evidence behind it."""

import hashlib
import json
from typing import Any

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.upstream import Upstream


def only_event(gate: Gateway, **filters: Any) -> dict[str, Any]:
    events = gate.events(**filters)
    assert len(events) == 1, events
    return events[0]


def test_a_computing_action_answers_with_evidence(gate: Gateway, agent: Bearer) -> None:
    answer = agent.execute("text_digest", {"text": "héllo wörld"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["decision"] == "executed"
    assert body["output"]["sha256"] == hashlib.sha256("héllo wörld".encode()).hexdigest()
    assert body["verification"] == {"outcome": "unverifiable_declared", "is_fully_successful": True}
    assert body["grant_id"].startswith("grant_")
    assert body["receipt_id"].startswith("rcpt_")
    assert set(body["runtime"]) == {"duration_ms", "exit_code", "fuel_consumed"}
    event = only_event(gate, trace_id=body["trace_id"])
    assert (event["decision"], event["event_type"]) == ("allow", "ActionCall")
    assert event["receipt_id"] == body["receipt_id"]
    assert event["session_id"] == agent.session_id
    receipt = agent.get(f"/v1/receipts/{body['receipt_id']}").json()
    assert receipt["signature_status"] == "verified"
    assert receipt["normalized_result"]["kind"] == "success"
    assert receipt["failure_class"] is None
    assert receipt["provider_receipt"] == body["output"]


def test_a_file_action_writes_below_its_root_and_is_verified(gate: Gateway, agent: Bearer) -> None:
    answer = agent.execute("file_write", {"path": "notes/hello.txt", "content": "hello"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["verification"] == {"outcome": "verified", "is_fully_successful": True}
    assert (gate.state / "files" / "notes" / "hello.txt").read_text() == "hello"
    receipt = agent.get(f"/v1/receipts/{body['receipt_id']}").json()
    assert hashlib.sha256(b"hello").hexdigest() in json.dumps(receipt["effect_evidence"])


def test_an_http_action_reaches_its_upstream_and_is_verified(gate: Gateway, agent: Bearer, up: Upstream) -> None:
    answer = agent.execute("http_fetch", {"path": "/things?limit=2"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"] == {"status": 200, "body": {"ok": True, "path": "/things?limit=2"}}
    assert answer.json()["verification_outcome"] == "verified"
    assert up.seen[-1].headers["host"] == "upstream.gateway.test"


def test_a_secret_is_added_by_the_host_and_appears_nowhere_else(gate: Gateway, agent: Bearer, up: Upstream) -> None:
    secret = json.loads((gate.state / "secrets.json").read_text())["upstream_token"]
    answer = agent.execute("http_post", {"path": "/messages", "message": "hi"})
    assert answer.status_code == 200, answer.text
    assert up.seen[-1].headers["authorization"] == f"Bearer {secret}"
    assert up.seen[-1].json() == {"message": "hi"}
    assert secret not in answer.text
    assert secret not in agent.get(f"/v1/receipts/{answer.json()['receipt_id']}").text
    assert secret not in json.dumps(gate.events())
    assert secret not in gate.log.read_text()
    for name in ("ledger.sqlite3", "ledger.sqlite3-wal"):
        path = gate.state / name
        assert not path.exists() or secret.encode() not in path.read_bytes()


def test_policy_denies_with_a_reason(gate: Gateway, agent: Bearer) -> None:
    answer = agent.execute("forbidden_export", {"table": "customers"})
    assert answer.status_code == 403
    assert answer.json()["error"] == "policy_denied"
    assert answer.json()["deny_reason"]
    event = gate.events(session_id=agent.session_id, decision="deny")[0]
    assert event["error_code"] == "policy_denied"
    assert event["deny_reason"] == answer.json()["deny_reason"]
    assert event["policy_rule"]


def test_a_failed_verification_is_an_answer_that_is_not_fully_successful(agent: Bearer) -> None:
    answer = agent.execute("http_fetch", {"path": "/status/404"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification"] == {"outcome": "verification_failed", "is_fully_successful": False}
    receipt = agent.get(f"/v1/receipts/{answer.json()['receipt_id']}").json()
    assert receipt["failure_class"] == "verification_failed"
    assert receipt["verification_outcome"]["status"] == "verification_failed"
    assert receipt["verification_outcome"]["reason"]


def failed(gate: Gateway, agent: Bearer, answer: httpx.Response) -> dict[str, Any]:
    """The receipt of a 502, found through its event."""
    assert (answer.status_code, answer.json()) == (502, {"error": "action_execution_failed"})
    event = gate.events(session_id=agent.session_id, decision="error")[0]
    assert event["error_code"] == "action_execution_failed"
    receipt: dict[str, Any] = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
    assert receipt["verification_outcome"] == {"status": "provider_failed_before_verification"}
    return receipt


def test_a_provider_error_is_502_with_a_receipt(gate: Gateway, agent: Bearer) -> None:
    receipt = failed(gate, agent, agent.execute("http_fetch", {"path": "/status/500"}))
    assert receipt["normalized_result"]["kind"] == "provider_failure"


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        ({"fuel": 50_000_000_000, "memory_mb": 0, "seconds": 0}, "provider_failure", "fuel"),
        ({"fuel": 0, "memory_mb": 4000, "seconds": 0}, "provider_failure", "memory"),
    ],
    ids=["fuel", "memory"],
)
def test_a_call_beyond_its_limits_is_502_with_a_receipt_that_names_the_limit(
    gate: Gateway, agent: Bearer, body: dict[str, Any], kind: str, word: str
) -> None:
    """A time limit is proven in tests/workers/host, where one is short."""
    receipt = failed(gate, agent, agent.execute("spin", body))
    assert receipt["normalized_result"]["kind"] == kind
    assert word in receipt["normalized_result"]["reason"]


def test_a_schema_violation_names_the_place_and_never_the_value(agent: Bearer) -> None:
    answer = agent.execute("text_digest", {"text": 5, "hidden-value": 1})
    assert answer.status_code == 422
    assert answer.json()["error"] == "schema_violation"
    assert answer.json()["reason"]
    answer = agent.execute("text_digest", {"text": ["s3cret-looking"]})
    assert "s3cret" not in answer.text


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"text":"a","text":"b"}',
        b'{"text":NaN}',
        b"[" * 5000,
        b'"\xff"',
        b'{"text":' + b"[" * 40 + b"]" * 40 + b"}",
    ],
    ids=["half", "duplicate", "nan", "deep", "utf8", "nested"],
)
def test_a_body_that_is_not_i_json_is_422(agent: Bearer, raw: bytes) -> None:
    headers = agent.headers("POST", "/v1/actions/text_digest/execute") | {"Content-Type": "application/json"}
    answer = agent.http.post("/v1/actions/text_digest/execute", headers=headers, content=raw)
    assert (answer.status_code, answer.json()["error"]) == (422, "schema_violation")


def test_a_missing_body_is_an_empty_object_and_nulls_of_optional_fields_are_dropped(agent: Bearer) -> None:
    assert agent.execute("spin").status_code in (200, 422)
    answer = agent.execute("text_digest", {"text": "x"})
    assert answer.status_code == 200


def test_refusals_cost_no_budget(gate: Gateway) -> None:
    agent = gate.agent(max_calls=1)
    assert agent.execute("forbidden_export", {"table": "x"}).status_code == 403
    assert agent.execute("text_digest", {"text": 1}).status_code == 422
    assert agent.execute("no_such_action").status_code == 404
    assert agent.execute("text_digest", {"text": "1"}).status_code == 200


def test_discovery_shows_actions_without_their_insides(gate: Gateway) -> None:
    actions = gate.http.get("/v1/actions").json()
    assert {action["action_id"] for action in actions} >= {
        "text_digest", "file_write", "http_fetch", "http_post", "payment_transfer", "spin", "forbidden_export",
    }  # fmt: skip
    for action in actions:
        assert set(action) == {"action_id", "version", "risk_level", "description", "database_mode"}
        assert action["database_mode"] is None
        schema = gate.http.get(f"/v1/actions/{action['action_id']}/schema/request")
        assert schema.status_code == 200
        assert schema.json()["type"] == "object"
    manifest = gate.http.get("/v1/actions/http_fetch").json()
    assert manifest["egress"]["profile"] == "direct_allowlist"
    assert manifest["egress"]["allowed_domains"] == ["upstream.gateway.test"]
    assert manifest["provider_module_digest"].startswith("sha256:")
    assert gate.http.get("/v1/actions/nothing").status_code == 404
    assert gate.http.get("/v1/actions/nothing/schema/request").status_code == 404


def test_health_and_readiness_name_every_dependency(gate: Gateway) -> None:
    assert gate.http.get("/healthz").json() == {"status": "ok"}
    ready = wait_for(lambda: (answer := gate.http.get("/readyz")).status_code == 200 and answer, "readiness")
    assert ready.json() == {
        "status": "ready", "redis": True, "opa": True, "ledger": True, "approval_store": True, "egress_proxy": None,
        "actions_registered": 7, "ledger_full": False, "crash_loops": [], "clock_error": None, "draining": False,
    }  # fmt: skip
