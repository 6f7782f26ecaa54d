"""`gateway actions rollback` is killed between its files, or between files and reload: the manifest in force goes on,
and the next start reads whole files."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_action_history import change, config, digest, done, has_copies, history
from tests.support.gateway import START_SECONDS, Gateway, gateway
from tests.support.manifests import PROVIDERS, put_module, trust

KILLED = """
import os, signal, sys
from pathlib import Path
from supervisor.cli import main

def rename(path, target):
    if sys.argv[1] == "half":
        os.kill(os.getpid(), signal.SIGKILL)
    os.rename(path, target)
    if target.suffix == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)

Path.rename = rename
sys.exit(main(["actions", "rollback", "text_digest", *sys.argv[2:]]))
"""


def killed(gate: Gateway, after: str) -> None:
    """Roll back, and die once the file with this suffix is replaced; `half`: before any is."""
    named = ["--state-dir", str(gate.state), "--config", str(gate.log.parent / "gateway.toml")]
    ended = subprocess.run([sys.executable, "-c", KILLED, after, *named], check=False, timeout=START_SECONDS)
    assert ended.returncode == -signal.SIGKILL


def version(gate: Gateway) -> str:
    """The version of a call that is made now."""
    answer = gate.agent().execute("text_digest", {"text": "hello"})
    assert answer.status_code == 200, answer.text
    return str(gate.events(event_type="ActionCall", limit=1)[0]["action_version"])


@pytest.mark.parametrize(
    ("after", "in_force"),
    [
        ("half", "1.1.0"),  # a temporary file lies there
        (".wasm", "1.1.0"),  # its module is trusted and there again
        (".yaml", "1.0.0"),  # all files, and no reload
    ],
)
def test_a_rollback_that_is_killed_leaves_one_manifest_or_the_other_for_the_next_start(
    tmp_path: Path, after: str, in_force: str
) -> None:
    folder = tmp_path / "actions"
    module = put_module(folder, (PROVIDERS / "text_digest.wasm").read_bytes() + b"\x00\x05\x04test")
    trust(folder, module)
    by_version = {"1.0.0": change(tmp_path, provider_module_digest=module)}
    with gateway(tmp_path, config(tmp_path)) as gate:
        has_copies(gate)
        by_version["1.1.0"] = change(tmp_path, version="1.1.0")
        (folder / "modules" / f"{module.removeprefix('sha256:')}.wasm").unlink()
        done(gate, "reload")
        killed(gate, after)
        assert version(gate) == "1.1.0", "what is in force goes on"
        assert digest(folder / "text_digest.yaml") == by_version[in_force]
    with gateway(tmp_path, config(tmp_path)) as again:
        assert version(again) == in_force
        assert again.events(event_type="ActionRolledBack") == [], "the start's own event names the manifest"
        started = again.events(event_type="GatewayStarted", limit=1)[0]
        assert started["change"] == {"manifests": {"text_digest": by_version[in_force]}}
        has_copies(again)
        assert history(again)[0]["digest"] == by_version[in_force]
        if in_force == "1.1.0":
            done(again, "actions", "rollback", "text_digest", "--to", "1.0.0")
            assert version(again) == "1.0.0"
        hidden = [one.name for one in folder.rglob(".*") if "text_digest" in one.name or "wasm" in one.name]
        assert hidden == [], "an unfinished file is removed by the next rollback"
