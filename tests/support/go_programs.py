"""Programs written in Go that tests run for real: installed, or built by scripts/go_programs.sh."""

import functools
import os
import shutil
import subprocess

import pytest

from tests.support.manifests import REPOSITORY

BUILT = REPOSITORY / ".venv" / "go"
VERSION = {
    "age": "--version", "age-keygen": "--version", "helm": "version", "kustomize": "version", "opa": "version",
    "openid-provider": "", "jwt-svids": "", "sops": "--version",
}  # fmt: skip
"""The argument that shows that each program runs, as in the script; empty for one that has none."""


def go_program(name: str) -> str:
    """Its path. Without it the test is skipped, in CI it fails."""
    for candidate in (shutil.which(name), shutil.which(name, path=BUILT)):
        if candidate is not None and _runs(candidate, VERSION[name]):
            return candidate
    said = f"no {name} to test with: run `make servers` with Go installed (scripts/go_programs.sh)"
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)


@functools.cache
def _runs(program: str, question: str) -> bool:
    if not question:
        return os.access(program, os.X_OK)
    return subprocess.run([program, question], capture_output=True, timeout=60, check=False).returncode == 0
