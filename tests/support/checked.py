"""A whole configuration in one folder, as an operator makes it, to be checked and spoilt by tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support.manifests import REPOSITORY, all_examples, open_policy
from tests.support.processes import GATEWAY

SECONDS = 300
WATCHED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("left_behind.py")), "60")


def gateway(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the console script in a folder. It fails when a process that it started outlives it."""
    return subprocess.run(
        [*WATCHED, GATEWAY, *arguments], capture_output=True, text=True, timeout=SECONDS, cwd=folder,
        stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip


def whole_configuration(folder: Path) -> Path:
    """Keys, operator, secrets, the example actions and a policy for them; returns gateway.toml, without a problem."""
    made = gateway(folder, "keys", "make", "keys", "--operator", "ann")
    assert made.returncode == 0, made.stderr
    settings, _, rest = made.stdout.partition("\n\n")[2].partition("\n\n")
    operators, _, _ = rest.partition("\n\n")
    secrets = folder / "secrets.json"
    secrets.write_text(json.dumps({"upstream_token": "token-of-an-upstream", "bank_token": "token-of-a-bank"}))
    secrets.chmod(0o600)
    all_examples(folder / "actions")
    open_policy(folder / "policy")
    text = f"""state_dir = "state"
public_base_url = "https://gateway.example"
listen_uds_path = "run/gate.sock"
listen_admin_uds_path = "run/gate-admin.sock"
manifests_dir = "actions"
policy_dir = "policy"

{settings}

{operators}

[secrets]
file = "secrets.json"
"""
    file = folder / "gateway.toml"
    file.write_text(text)
    return file


def tree_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and folder below: mode, time of change, content."""
    tree = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        tree[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return tree


def rewrite_yaml(file: Path, **changes: object) -> None:
    """Put other values at the top of a manifest."""
    document = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(document | changes, sort_keys=False))


DEFAULT_REGO = REPOSITORY / "contrib" / "policy" / "gateway.rego"
