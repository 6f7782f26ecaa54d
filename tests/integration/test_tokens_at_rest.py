"""No lease token, proof or operator's key lies in a file that the gateway writes, nor in a backup."""

import subprocess
from pathlib import Path

import httpx

from tests.conformance import scene
from tests.support.gateway import Bearer
from tests.support.manifests import example, write_manifests
from tests.support.processes import GATEWAY
from tests.support.production import PRINCIPAL, Production, production

TEXT = {"text": "x"}


def sent_secrets(gate: Production, use: "list[str]") -> None:
    """Have every client note what it sends, and what leases it gets."""

    def note(request: httpx.Request) -> None:
        use.extend(request.headers.get_list("dpop"))
        use.extend(value.removeprefix("DPoP ") for value in request.headers.get_list("authorization"))

    for client in (gate.http, gate.operators):
        client.event_hooks["request"].append(note)


def work(gate: Production) -> Bearer:
    """Leases, calls, refusals, a hold that is approved, one that is denied, and one that waits."""
    agent, operator = gate.agent(), gate.operator()
    for bearer in (agent, gate.agent(max_calls=5), *(gate.agent() for _ in range(8))):
        assert bearer.execute("text_digest", TEXT).status_code == 200
    assert agent.execute("nothing", TEXT).status_code == 404
    proof = agent.headers("POST", "/v1/actions/text_digest/execute")
    answers = [gate.http.post("/v1/actions/text_digest/execute", headers=proof, json=TEXT) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 401]
    holds = [agent.execute("held_digest", {"text": text}) for text in ("approved", "denied", "waits")]
    assert {hold.status_code for hold in holds} == {202}
    paths = [f"/v1/approvals/{hold.json()['approval_id']}" for hold in holds]
    assert operator.post(f"{paths[0]}/approve").status_code == 200
    assert operator.post(f"{paths[1]}/deny").status_code == 200
    assert [agent.get(f"{path}/poll").json()["state"] for path in paths] == ["approved", "denied", "pending"]
    return agent


def found(folder: Path, secrets: list[str]) -> list[tuple[str, str]]:
    """Files below the folder that hold a secret, or the signature of a signed one."""
    parts = {secret.rpartition(".")[2].encode(): secret for secret in secrets}
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return [
        (str(file.relative_to(folder)), parts[part])
        for file in files
        for data in [file.read_bytes()]
        for part in parts
        if part in data
    ]


def test_no_token_proof_or_operator_key_is_in_ledger_store_state_or_backup(tmp_path: Path) -> None:
    held = example("text_digest", action_id="held_digest", risk_level="critical")
    patient = {"timeout_seconds": 300}
    write_manifests(tmp_path / "actions", example("text_digest", resource_limits=patient), held)
    scene.write_policy(tmp_path / "policy", PRINCIPAL)
    secrets: list[str] = []
    top = f'manifests_dir = "{tmp_path / "actions"}"\npolicy_dir = "{tmp_path / "policy"}"\nlease_ttl_seconds = 3600\n'
    with production(tmp_path / "gate", top) as gate:
        sent_secrets(gate, secrets)
        work(gate)
        assert len(set(secrets)) > 30
        assert (gate.state / "ledger.sqlite3-wal").stat().st_size > 0
        assert found(gate.state, secrets) == []
        backup = [str(GATEWAY), "backup", str(tmp_path / "backup"), "--config", str(tmp_path / "gate" / "gateway.toml")]
        subprocess.run(backup, check=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
        gate.child("notary").kill()
        work(gate)
    assert found(tmp_path / "gate" / "state", secrets) == []
    assert found(tmp_path / "backup", secrets) == []
