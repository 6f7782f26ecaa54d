"""The drill: a backup of a gateway under load, put back elsewhere, verified, and gone on from.

tests/notary/programs/test_backup.py tests the files of a backup, and that a failed one leaves nothing.
"""

import shutil
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.conformance import scene
from tests.support.gateway import Bearer, wait_for
from tests.support.manifests import example, write_manifests
from tests.support.pace import Paces
from tests.support.processes import GATEWAY
from tests.support.production import PRINCIPAL, production

TEXT = {"text": "x"}
PATIENT = {"fuel": 10**12, "timeout_seconds": 300}


@dataclass
class Taken:
    """The state of the first gateway: its folder, settings, the backup, and an agent with an earlier lease."""

    first: Path
    top: str
    backup: Path
    agent: Bearer
    last_receipt: str
    """The receipt of a call after the backup."""


def command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [GATEWAY, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    folder: Path = tmp_path_factory.mktemp("backup")
    first, backup = folder / "first", folder / "kept"
    write_manifests(folder / "actions", example("text_digest", resource_limits=PATIENT))
    scene.write_policy(folder / "policy", PRINCIPAL)
    top = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\nlease_ttl_seconds = 3600\n'
    with production(first, top) as gate:
        agent, other = gate.agent(), gate.agent()
        ended, answers, pace = threading.Event(), list[int](), Paces.session()

        def load() -> None:
            while not ended.is_set():
                pace.wait()
                answers.append(other.execute("text_digest", TEXT).status_code)

        caller = threading.Thread(target=load)
        caller.start()
        try:
            wait_for(lambda: len(answers) > 10, "a gateway under load")
            wait_for((first / "state" / "checkpoints").exists, "the first checkpoint")
            made = command("backup", backup, "--with-keys", "--config", first / "gateway.toml")
            count = len(answers)
            wait_for(lambda: len(answers) > count + 5, "calls after the backup")
        finally:
            ended.set()
            caller.join()
        assert set(answers) == {200}
        assert made.returncode == 0, made.stderr
        receipt = agent.execute("text_digest", TEXT).json()["receipt_id"]
    return Taken(first, top, backup, agent, receipt)


def test_restored_elsewhere_it_verifies_starts_only_when_accepted_and_honours_nothing_of_before(
    taken: Taken, tmp_path: Path
) -> None:
    public = ("--keys", taken.backup / "receipt-keys.jwks.json", "--checkpoint", taken.backup / "checkpoints")
    verified = command("ledger", "verify", taken.backup / "ledger.sqlite3", *public)
    assert verified.returncode == 0, verified.stdout + verified.stderr

    second = tmp_path / "second"
    restore(taken, second)
    config = second / "gateway.toml"
    refused = command("run", "--config", config)
    assert refused.returncode == 9
    assert "the ledger is a backup of" in refused.stderr
    accepted = command("ledger", "accept-rollback", "--reason", "the first host burnt down", "--config", config)
    assert accepted.returncode == 0, accepted.stderr
    with production(second, taken.top) as gate:
        old = replace(taken.agent, http=gate.http)
        assert old.execute("text_digest", TEXT).status_code == 401, "a lease of before, whose proofs may have been used"
        assert gate.agent().execute("text_digest", TEXT).status_code == 200
        operator = gate.operator()
        (event,) = gate.events(event_type="RollbackAccepted")
        assert event["reason"].startswith("the first host burnt down (the ledger is a backup of")
        assert operator.get(f"/v1/receipts/{taken.last_receipt}").status_code == 404
        assert operator.get("/v1/audit/verify").json()["intact"] is True


def restore(taken: Taken, folder: Path) -> None:
    """As docs/operations.md has it: state into a state directory, keys where the configuration names them."""
    (folder / "state").mkdir(parents=True, mode=0o700)
    for name in ("ledger.sqlite3", "checkpoints", "checkpoint-keys.jwks.json", "lease-keys.jwks.json"):
        shutil.copy2(taken.backup / name, folder / "state" / name)
    (folder / "keys").mkdir(mode=0o700)
    shutil.copytree(taken.backup / "keys", folder / "keys" / "keys")
    shutil.copy2(taken.backup / "receipt-keys.jwks.json", folder / "keys")
    shutil.copy2(taken.first / "keys" / "operator.pem", folder / "keys")
    for name in ("credentials", "gateway.toml"):
        text = (taken.first / name).read_text()
        (folder / name).write_text(text.replace(str(taken.first), str(folder)))
