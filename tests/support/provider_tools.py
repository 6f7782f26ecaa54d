"""The tools that build providers: brought once, by scripts/provider_tools.sh, for the builds of tests."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.manifests import REPOSITORY

BROUGHT = REPOSITORY / ".venv" / "providers"
BUILD_SECONDS = 600
"""Seconds of work; a deadline costs nothing."""


def build(provider: Path, language: str) -> None:
    """`make` in the folder of a provider. Without its tools the test is skipped, in CI it fails."""
    if not (BROUGHT / language / "ready").is_file():
        said = f"nothing to build {language} with: run `make servers` (scripts/provider_tools.sh)"
        if os.environ.get("CI"):
            pytest.fail(said)
        pytest.skip(said)
    rust = BROUGHT / "rust"
    brought = {"RUSTUP_HOME": rust / "rustup", "CARGO_HOME": rust / "cargo", "CARGO_TARGET_DIR": rust / "target"}
    environment = os.environ | {name: str(path) for name, path in brought.items()} | {"PROVIDER_TOOLS": str(BROUGHT)}
    done = subprocess.run(
        ["make", "-C", provider], env=environment, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
