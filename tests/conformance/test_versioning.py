"""Versioning."""

import json
import subprocess
from pathlib import Path

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import BOTH_MODES, row
from tests.conformance.shapes import SEMANTIC
from tests.support.gateway import START_SECONDS, wait_for
from tests.support.processes import GATEWAY


@row("versioning/1-prefix")
def test_resources_are_below_v1(gate: Deployment) -> None:
    for path in ("/v1/actions", "/.well-known/jwks.json"):
        assert gate.client.get(path).status_code == 200
    for path in ("/actions", "/v2/actions", "/leases", "/v1/.well-known/jwks.json"):
        assert gate.client.get(path).status_code == 404


@row("versioning/2-service-version")
def test_the_service_and_its_actions_have_versions(gate: Deployment) -> None:
    assert SEMANTIC.fullmatch(gate.status()["version"])
    assert all(SEMANTIC.fullmatch(one["version"]) for one in gate.client.get("/v1/actions").json())


@row("versioning/4-policy_version")
def test_the_policy_has_a_version(gate: Deployment, agent: Caller, operator: Caller) -> None:
    agent.execute("text_digest", {"text": "x"})
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    version = operator.get("/v1/admin/policy").json()["policy_version"]
    assert event["policy_version"] == version
    assert version.startswith(json.loads((gate.policy / "data.json").read_text())["policy_version"].partition("+")[0])


@BOTH_MODES
@row("versioning/5-rotation")
def test_old_receipts_verify_after_a_rotation(gate: Deployment, agent: Caller, operator: Caller) -> None:
    before = agent.execute("text_digest", {"text": "before"}).json()["receipt_id"]
    old = gate.receipt(before)["signing_key_id"]
    command: list[str | Path] = [GATEWAY, "keys", "rotate", *rotation_target(gate), "--purpose", "receipt"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=START_SECONDS)
    assert done.returncode == 0, done.stderr

    def newest() -> str:
        receipt_id = agent.execute("text_digest", {"text": "after"}).json()["receipt_id"]
        receipt = gate.receipt(receipt_id)
        assert receipt["signature_status"] == "verified"
        return str(receipt["signing_key_id"])

    new = wait_for(lambda: (kid := newest()) != old and kid, "a receipt by the new key")
    kids = [key["kid"] for key in operator.get("/v1/receipt-keys").json()["keys"]]
    assert {old, new} <= set(kids)
    assert gate.receipt(before)["signature_status"] == "verified"
    assert gate.receipt(before)["signing_key_id"] == old


def rotation_target(gate: Deployment) -> list[str | Path]:
    """The arguments that name the keys for `gateway keys rotate`."""
    state: list[str | Path] = ["--state-dir", gate.state] if gate.is_dev else []
    return [*state, "--config", gate.folder / "gateway.toml"]
