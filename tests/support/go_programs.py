"""Programs written in Go that tests run for real: installed, or built by scripts/go_programs.sh."""

import os
import shutil

import pytest

from tests.support.manifests import REPOSITORY

BUILT = REPOSITORY / ".venv" / "go"


def go_program(name: str) -> str:
    """Its path. Without it the test is skipped, in CI it fails."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{BUILT}")
    if found is not None:
        return found
    said = f"no {name} to test with: run `make servers` with Go installed (scripts/go_programs.sh)"
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)
