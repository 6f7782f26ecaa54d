"""`gateway keys make`: what a production configuration needs, in one command."""

import hashlib
import re
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.programs import INTERPRETER
from tests.supervisor.test_cli import here
from tests.support.manifests import example, open_policy, write_manifests


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*INTERPRETER, "supervisor.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_its_output_goes_into_a_configuration_that_check_accepts(tmp_path: Path) -> None:
    told = run("keys", "make", str(tmp_path / "keys"), "--operator", "ann")
    assert told.returncode == 0, told.stderr
    snippet = told.stdout[told.stdout.index("lease_signing") : told.stdout.index("For the operator")]
    head, operators = snippet.split("[[operators]]")
    write_manifests(tmp_path / "actions", example("text_digest"))
    open_policy(tmp_path / "policy")
    config = tmp_path / "gateway.toml"
    config.write_text(
        f'state_dir = "state"\npublic_base_url = "https://gateway.example"\n{head}\n'
        f'manifests_dir = "actions"\npolicy_dir = "policy"\n[[operators]]{operators}\n'
        f'[identity.peercred.principals.1000]\nprincipal = "billing"\n'
    )
    checked = run("check", "--config", str(config))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for name in re.findall(r'_path = "(.*)"', head):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    api_key = told.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r"key-ann-[0-9a-f]{32}", api_key)
    operator = tomllib.loads(config.read_text())["operators"][0]
    assert operator["api_key_sha256"] == hashlib.sha256(api_key.encode()).hexdigest()


def test_keys_that_are_there_are_kept(tmp_path: Path) -> None:
    assert here(tmp_path, "keys", "make", str(tmp_path / "keys")).returncode == 0
    before = (tmp_path / "keys" / "keys" / "receipt.pem").read_bytes()
    assert here(tmp_path, "keys", "make", str(tmp_path / "keys")).returncode == 0
    assert (tmp_path / "keys" / "keys" / "receipt.pem").read_bytes() == before


@pytest.mark.parametrize("name", ["", "Ann", "a-b", "../x", "a" * 80])
def test_a_name_that_would_break_the_key_is_refused(tmp_path: Path, name: str) -> None:
    refused = here(tmp_path, "keys", "make", str(tmp_path / "keys"), "--operator", name)
    assert refused.returncode == Exit.USAGE
    assert "operator name" in refused.stderr


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = here(tmp_path, "keys", "make", str(tmp_path / "file" / "keys"))
    assert refused.returncode == Exit.NO_PERMISSION
    assert refused.stderr.count("\n") == 1
