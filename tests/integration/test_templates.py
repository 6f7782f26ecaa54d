"""Requests as real APIs take them, by a whole gateway: optional parameters, forms, idempotency, chosen answers."""

from typing import Any

from tests.support.gateway import Gateway
from tests.support.manifests import PATIENT, example
from tests.support.own_gateway import own_gateway
from tests.support.upstream import Upstream

HOST = "http://upstream.gateway.test"
SCHEMA: dict[str, Any] = {
    "type": "object", "additionalProperties": False, "required": ["id"],
    "properties": {
        "id": {"type": "string"}, "expand": {"type": "array", "items": {"type": "string"}},
        "dry_run": {"type": "boolean"}, "amount": {"type": "integer"}, "reason": {"type": "string"},
    },
}  # fmt: skip


def refund(action_id: str, **changes: Any) -> dict[str, Any]:
    manifest = example("http_post", action_id=action_id, secrets=[], **PATIENT, **changes)
    manifest["io"] = {"request_schema": SCHEMA}
    manifest["template"] = {
        "method": "POST",
        "url_template": f"{HOST}/status/302/{{id}}{{?dry_run,expand*}}",
        "headers": {"X-Reason": "refund: {reason}"},
        "body_form": {"amount": "{amount}", "metadata[id]": "{id}", "note": "refund of {id}, {amount} cents"},
    }
    return manifest | {
        "response": {"headers": ["location"], "pick": {"done": "/ok"}},
        "idempotency": {"header": "Idempotency-Key"},
        "verification_config": {"expected": [302]},
    }


gate = own_gateway("", refund("refund"), refund("large_refund", risk_level="critical"))
"""A gateway with an action of low risk and one that waits for a person."""


def test_an_upstream_gets_a_form_and_the_agent_the_chosen_parts_of_its_answer(gate: Gateway, up: Upstream) -> None:
    body = {"id": "a/b", "expand": ["x", "y&z"], "dry_run": True, "amount": 5, "reason": "broken"}
    answer = gate.agent().execute("refund", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification_outcome"] == "verified"
    assert answer.json()["output"] == {
        "status": 302, "headers": {"location": "http://127.0.0.1:1/elsewhere"}, "body": {"done": True},
    }  # fmt: skip
    sent = up.seen[-1]
    assert sent.path == "/status/302/a%2Fb?dry_run=true&expand=x&expand=y%26z"
    assert sent.headers["content-type"] == "application/x-www-form-urlencoded"
    assert sent.headers["x-reason"] == "refund: broken"
    assert sent.body == b"amount=5&metadata%5Bid%5D=a%2Fb&note=refund+of+a%2Fb%2C+5+cents"


def test_parts_of_a_request_that_its_body_lacks_are_left_out(gate: Gateway, up: Upstream) -> None:
    assert gate.agent().execute("refund", {"id": "1"}).status_code == 200
    sent = up.seen[-1]
    assert (sent.path, sent.body) == ("/status/302/1", b"metadata%5Bid%5D=1")
    assert "x-reason" not in sent.headers


def test_each_call_has_an_idempotency_key_of_its_own(gate: Gateway, up: Upstream) -> None:
    agent, before = gate.agent(), len(up.seen)
    assert [agent.execute("refund", {"id": "1"}).status_code for _ in range(2)] == [200, 200]
    first, second = (one.headers["idempotency-key"] for one in up.seen[before:])
    assert first != second


def test_an_operator_sees_the_place_of_the_key_and_an_approved_call_sends_it_once(gate: Gateway, up: Upstream) -> None:
    agent, operator, before = gate.agent(), gate.operator(), len(up.seen)
    held = agent.execute("large_refund", {"id": "1"})
    assert held.status_code == 202, held.text
    approval_id = held.json()["approval_id"]
    shown = operator.get(f"/v1/approvals/{approval_id}").json()["approved_request"]
    assert ["Idempotency-Key", "<intent id>"] in shown["headers"]
    assert shown["idempotency_header"] == "Idempotency-Key"
    assert shown["response"] == {"headers": ["location"], "pick": {"done": "/ok"}}
    assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 200
    [sent] = up.seen[before:]
    assert sent.headers["idempotency-key"] not in ("", "<intent id>")
