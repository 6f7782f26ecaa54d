"""The commands of docs/api.md, run one after the other, do what the document says."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.gateway import Gateway
from tests.support.shell_tools import shell_tools

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
CURL = 'curl() { command curl --silent --fail-with-body "$@"; echo; }'


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.mark.parametrize("only_ours", [False, True], ids=["tools-of-the-machine", "stand-ins"])
def test_the_commands_of_the_document_do_what_it_says(gate: Gateway, tmp_path: Path, only_ours: bool) -> None:
    (script,) = blocks("python")
    (tmp_path / "proof.py").write_text(script)
    tools = shell_tools(tmp_path / "bin", only_ours=only_ours)
    operator = gate.ready["operator"]
    commands = "\n".join(blocks("sh")).replace("http://127.0.0.1:3000", gate.base)
    assert gate.base in commands
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{CURL}\n{commands}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {
            "PATH": f"{tools}:{os.environ['PATH']}", "OPERATOR_KEY": operator["key"],
            "OPERATOR_PEM": operator["private_key_file"],
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines() if line]
    ready, actions, result, receipt, held, poll, denied, events = answers
    assert ready["status"] == "ready"
    assert "text_digest" in [action["action_id"] for action in actions]
    assert result["receipt_id"] == receipt["receipt_id"]
    assert (held["decision"], poll["state"], denied["decision"]) == ("pending_approval", "pending", "deny")
    assert events["events"][0]["event_type"] == "ApprovalDenied"
