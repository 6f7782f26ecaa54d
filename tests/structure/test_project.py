"""What those who work on the project rely on: the list of targets, and a release that refuses what is not ready."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def test_make_help_lists_every_target() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    listed = [line.split()[0] for line in run("make", "--no-print-directory", "help", cwd=ROOT).stdout.splitlines()]
    assert sorted(" ".join(phony).split()) == sorted(listed)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The tracked files of this tree as a repository of one commit."""
    names = run("git", "ls-files", "pyproject.toml", "CHANGELOG.md", "ipc/settings.py", "scripts", "sdk", cwd=ROOT)
    for name in names.stdout.splitlines():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for arguments in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"]):
        assert run("git", *arguments, cwd=tmp_path).returncode == 0
    return tmp_path


def test_a_release_names_everything_that_is_missing_at_once_and_builds_nothing(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    (checkout / "sdk/gateway_client/version.py").write_text('__version__ = "9.9.9"\n')
    refused = run("bash", "scripts/release.sh", sys.executable, checkout / "dist", cwd=checkout)
    assert refused.returncode == 1
    assert "not committed" in refused.stderr
    assert "CHANGELOG.md has no section" in refused.stderr
    assert "sdk/gateway_client/version.py has another version" in refused.stderr
    assert "3 problems, nothing built" in refused.stderr
    assert not (checkout / "dist").exists()
