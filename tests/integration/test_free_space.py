"""A ledger's volume that runs full: no call begins, every refusal tells why, and the gateway recovers by itself."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gateway import PROGRAM, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.upstream import Upstream

MIB = 1 << 20
TRANSFER = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own of 48 MiB."""
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={48 * MIB},mode=0700", "test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.fixture
def gate(up: Upstream, tmp_path: Path, volume: Path) -> Iterator[Gateway]:
    tables = f'[ledger]\npath = "{volume / "ledger.sqlite3"}"\nmin_free_bytes = {16 * MIB}\n'
    with gateway(tmp_path, config_for(up.address, patient(tmp_path / "actions")) + tables) as running:
        yield running


def test_a_full_volume_refuses_calls_leases_and_approvals_before_anything_runs_and_recovers_by_itself(
    gate: Gateway, volume: Path, up: Upstream
) -> None:
    agent, operator = gate.agent(), gate.operator()
    held = agent.execute("payment_transfer", TRANSFER).json()["approval_id"]
    assert agent.execute("http_post", {"path": "/a", "message": "m"}).status_code == 200
    before, ballast = len(up.seen), volume / "ballast"
    ballast.write_bytes(bytes(40 * MIB))
    wait_for(lambda: gate.http.get("/readyz").status_code == 503, "a gateway that is not ready")
    readiness = gate.http.get("/readyz").json()
    assert (readiness["status"], readiness["ledger_full"], readiness["ledger"]) == ("not_ready", True, True)
    answer = agent.execute("http_post", {"path": "/b", "message": "m"})
    assert (answer.status_code, answer.json()) == (503, {"error": "ledger_full"})
    assert answer.headers["retry-after"] == "5"
    assert operator.post(f"/v1/approvals/{held}/approve").json() == {"error": "ledger_full"}
    lease = gate.http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk})
    assert (lease.status_code, lease.json()) == (503, {"error": "ledger_full"})
    status = operator.get("/v1/admin/status").json()
    assert status["status"] == "degraded"
    assert status["ledger_volume"]["min_free_bytes"] == 16 * MIB
    assert 0 <= status["ledger_volume"]["free_bytes"] < 16 * MIB
    assert status["ledger_volume"]["is_full"] is True
    here = [*PROGRAM, "status", "--state-dir", str(gate.state)]
    wait_for(lambda: b"ledger full" in subprocess.run(here, capture_output=True, timeout=60).stdout, "the local word")
    metrics = operator.get("/metrics").text
    assert 'gate_calls_refused_total{reason="ledger_full"} 2.0' in metrics
    assert "gate_ledger_free_bytes " in metrics
    assert agent.get(f"/v1/approvals/{held}/poll").json()["state"] == "pending"
    assert len(up.seen) == before
    full = [one["mend"] for one in gate.lines() if one["message"] == "the ledger's volume is full: no call begins"]
    assert set(full) == {"make room on it: docs/runbooks/full-disk.md"}

    ballast.unlink()
    wait_for(gate.is_ready, "a gateway that is ready again")
    assert operator.post(f"/v1/approvals/{held}/approve").status_code == 200
    assert len(up.seen) == before + 1
    assert operator.get("/v1/admin/status").json()["ledger_volume"]["is_full"] is False
    assert operator.get("/v1/audit/verify").json()["intact"] is True


@pytest.mark.parametrize("where", ["beside the ledger", "on a volume of their own"])
def test_files_of_actions_leave_room_for_the_ledger_and_for_others(
    up: Upstream, tmp_path: Path, volume: Path, where: str
) -> None:
    is_shared = where == "beside the ledger"
    top = patient(tmp_path / "actions", file_write={"io": {"max_request_bytes": MIB}})
    (volume / "files").mkdir(mode=0o700)
    config = config_for(up.address, f'{top}files_dir = "{volume / "files"}"\n')
    if is_shared:
        config += f'[ledger]\npath = "{volume / "ledger.sqlite3"}"\nmin_free_bytes = {8 * MIB}\n'
    with gateway(tmp_path, config) as gate:
        agent = gate.agent()
        written = 0
        while (
            answer := agent.execute("file_write", {"path": f"reports/{written}", "content": "x" * 900_000})
        ).is_success:
            written += 1
            assert written < 60, "a volume of 48 MiB does not end"
        assert answer.status_code == 502, answer.text
        reason = gate.events(session_id=agent.session_id, decision="error")[0]["reason"]
        assert reason == "host_io: unavailable: the volume of the action's files has too little room left"
        status = os.statvfs(volume)
        left = status.f_bavail * status.f_frsize
        assert left >= (2 * 8 * MIB if is_shared else 48 * MIB // 20) - MIB
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        wait_for(gate.is_ready, "readiness")
        assert [one.name for one in (volume / "files").rglob("*") if one.name.startswith(".")] == []
        (volume / "files" / "reports" / "0").unlink()
        (volume / "files" / "reports" / "1").unlink()
        assert agent.execute("file_write", {"path": "reports/again", "content": "x" * 900_000}).status_code == 200
