"""The command with which an author calls a component without a gateway (docs/providers.md)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "code", "last"),
    [('{"text": "x"}', 0, 'result    {"sha256":'), ('{"txt": "x"}', 1, "error     Failure(kind='invalid-input'")],
)
def test_a_component_is_called_with_its_result_or_its_error(text: str, code: int, last: str) -> None:
    command = [sys.executable, "-m", "scripts.call_provider", "workers/providers/text_digest.wasm", text]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.splitlines()[-1].startswith(last)) == (code, True), done
