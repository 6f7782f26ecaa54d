"""Requests as real APIs take them, by a whole gateway: optional parameters, forms, idempotency, chosen answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import PATIENT, example, open_policy, write_manifests
from tests.support.upstream import Upstream, upstream

HOST = "http://upstream.gateway.test"
SCHEMA: dict[str, Any] = {
    "type": "object", "additionalProperties": False, "required": ["id"],
    "properties": {
        "id": {"type": "string"}, "expand": {"type": "array", "items": {"type": "string"}},
        "dry_run": {"type": "boolean"}, "amount": {"type": "integer"}, "reason": {"type": "string"},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """A gateway with an action of low risk and one that waits for a person, and their upstream."""

    gate: Gateway
    up: Upstream


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


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("templates")
    manifests = write_manifests(folder / "actions", refund("refund"), refund("large_refund", risk_level="critical"))
    policy = open_policy(folder / "policy", "refund", "large_refund")
    top = f'manifests_dir = "{manifests}"\npolicy_dir = "{policy}"\nlease_ttl_seconds = 3600\n'
    with upstream() as up, gateway(folder, config_for(up.address, top)) as running:
        yield Stage(running, up)


def test_an_upstream_gets_a_form_and_the_agent_the_chosen_parts_of_its_answer(stage: Stage) -> None:
    body = {"id": "a/b", "expand": ["x", "y&z"], "dry_run": True, "amount": 5, "reason": "broken"}
    answer = stage.gate.agent().execute("refund", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["verification_outcome"] == "verified"
    assert answer.json()["output"] == {
        "status": 302, "headers": {"location": "http://127.0.0.1:1/elsewhere"}, "body": {"done": True},
    }  # fmt: skip
    sent = stage.up.seen[-1]
    assert sent.path == "/status/302/a%2Fb?dry_run=true&expand=x&expand=y%26z"
    assert sent.headers["content-type"] == "application/x-www-form-urlencoded"
    assert sent.headers["x-reason"] == "refund: broken"
    assert sent.body == b"amount=5&metadata%5Bid%5D=a%2Fb&note=refund+of+a%2Fb%2C+5+cents"


def test_parts_of_a_request_that_its_body_lacks_are_left_out(stage: Stage) -> None:
    assert stage.gate.agent().execute("refund", {"id": "1"}).status_code == 200
    sent = stage.up.seen[-1]
    assert (sent.path, sent.body) == ("/status/302/1", b"metadata%5Bid%5D=1")
    assert "x-reason" not in sent.headers


def test_each_call_has_an_idempotency_key_of_its_own(stage: Stage) -> None:
    agent, before = stage.gate.agent(), len(stage.up.seen)
    assert [agent.execute("refund", {"id": "1"}).status_code for _ in range(2)] == [200, 200]
    first, second = (one.headers["idempotency-key"] for one in stage.up.seen[before:])
    assert first != second


def test_an_operator_sees_the_place_of_the_key_and_an_approved_call_sends_it_once(stage: Stage) -> None:
    agent, operator, before = stage.gate.agent(), stage.gate.operator(), len(stage.up.seen)
    held = agent.execute("large_refund", {"id": "1"})
    assert held.status_code == 202, held.text
    approval_id = held.json()["approval_id"]
    shown = operator.get(f"/v1/approvals/{approval_id}").json()["approved_request"]
    assert ["Idempotency-Key", "<intent id>"] in shown["headers"]
    assert shown["idempotency_header"] == "Idempotency-Key"
    assert shown["response"] == {"headers": ["location"], "pick": {"done": "/ok"}}
    assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 200
    [sent] = stage.up.seen[before:]
    assert sent.headers["idempotency-key"] not in ("", "<intent id>")
