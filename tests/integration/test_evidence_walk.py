"""The walk of docs/evidence.md, command by command, as an auditor types it: it prints what the document says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gateway import gateway

ROOT = Path(__file__).resolve().parents[2]
WALK = (ROOT / "docs" / "evidence.md").read_text().partition("\n## The walk\n")[2].partition("\n## ")[0]
STOPPED = "### 4. "
"""From this section on the gateway is stopped."""
CHANGING = [
    (r"127\.0\.0\.1:\d+(\+[0-9a-f]{8}\+\S+)?", "ADDRESS"),
    (r"\b(rcpt|evt|intent|trc)_[0-9a-f-]{36}", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
    (r"by the key [\w-]{43}", "by the key KID"),
    (r"signed \d+ checkpoints?", "signed SOME checkpoints"),
]
"""How many checkpoints were signed is a matter of seconds."""


def steps(section: str) -> list[tuple[str, str]]:
    """Commands of a section, with what they print."""
    commands: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            commands.append((command, printed))
    return commands


def plain(text: str) -> str:
    """The output without the parts that differ between runs."""
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text)
    return text


def run(command: str, folder: Path) -> str:
    """The output of a shell that uses the gateway's programs of this environment."""
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "XDG_CONFIG_HOME": str(folder / "config")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def test_an_auditor_comes_from_a_bundle_to_certainty(tmp_path: Path) -> None:
    (tmp_path / "contrib").symlink_to(ROOT / "contrib")
    before, mark, after = WALK.partition(STOPPED)
    assert mark
    receipt_id = ""

    def walk(section: str) -> int:
        nonlocal receipt_id
        for command, printed in steps(section):
            said = run(command.replace("rcpt_…", receipt_id), tmp_path)
            if (match := re.search(r"rcpt_[0-9a-f-]{36}", said)) is not None:
                receipt_id = match[0]
            assert plain(said) == plain(printed), command
        return len(steps(section))

    with gateway(tmp_path) as gate:
        (tmp_path / "ready.json").write_text(json.dumps(gate.ready))
        (tmp_path / "ready.json").chmod(0o600)
        assert walk(before) > 8
    assert walk(after) > 3


@pytest.mark.parametrize("words", ["What you hold", "What you need", "does not prove", "When it says no"])
def test_the_walk_tells_what_an_auditor_asks(words: str) -> None:
    assert words in WALK
