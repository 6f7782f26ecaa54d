"""`make quick`: nothing that it selects starts a gateway, and a start that the selection overlooks fails."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNSEEN = """
import importlib

def test_by_a_way_that_the_code_does_not_show() -> None:
    importlib.import_module("sub" + "process").run(["true"])
"""
SEEN = """
import pytest
from tests.support.gateway import gateway

def helper(folder):
    return gateway(folder)

@pytest.fixture
def running(tmp_path):
    with helper(tmp_path) as gate:
        yield gate

def test_by_a_fixture(running) -> None:
    raise AssertionError

def test_by_itself(tmp_path) -> None:
    with gateway(tmp_path):
        raise AssertionError

@pytest.mark.large
def test_of_much() -> None:
    raise AssertionError

def test_of_nothing() -> None:
    pass
"""


def quick(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """The command behind `make quick`, for these tests."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.quick", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


def test_what_starts_a_gateway_or_is_large_is_left_out_and_a_start_that_was_overlooked_fails_its_test(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tests"  # a name that the project's tests have
    folder.mkdir()
    (folder / "test_seen.py").write_text(SEEN)
    (folder / "test_unseen.py").write_text(UNSEEN)
    done = quick(folder, f"--rootdir={tmp_path}")
    assert (done.returncode, " 1 failed, 1 passed, 3 deselected" in done.stdout) == (1, True), done.stdout
    assert "this test starts a process" in done.stdout


def test_units_are_selected_and_whole_gateways_are_not() -> None:
    asked = ("ipc/channel", "supervisor/children", "supervisor/keepers", "integration", "conformance", "chaos")
    tests = ROOT / "tests"
    others = [
        path
        for path in (*tests.iterdir(), *(tests / "ipc").iterdir(), *(tests / "supervisor").iterdir())
        if not any(f"{one}/".startswith(f"{path.relative_to(tests)}/") for one in asked)
    ]
    done = quick("--collect-only", "tests", *(f"--ignore={path}" for path in others))
    assert done.returncode == 0, done.stdout
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {"tests/ipc/channel/test_framing.py", "tests/supervisor/children/test_backoff.py"} <= files
    assert not files & {"tests/supervisor/keepers/test_restarts.py", "tests/supervisor/children/test_real_children.py"}
    assert {name.split("/")[1] for name in files}.isdisjoint({"integration", "conformance", "chaos"})
