"""Which tests are slow, which process runs which, and how many examples are tried: each is declared in one place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.properties import CHOICE
from tests.support.shares import SECONDS, SLOW, divided, longest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
FILES = [path.relative_to(ROOT).as_posix() for path in TESTS.rglob("test_*.py")]
OWN_NUMBERS = {"support/properties.py", "integration/test_schemathesis.py", "structure/test_shares.py"}
"""Schemathesis tries three requests by endpoint and field, since operators' rates let no more through in a minute."""
PROCESSES = 3


def test_no_property_has_a_number_of_examples_of_its_own() -> None:
    named = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if "max_examples" in path.read_text()}
    assert named == OWN_NUMBERS


@pytest.mark.parametrize("start", [*SLOW, *SECONDS])
def test_each_line_of_the_tables_leads_to_tests(start: str) -> None:
    path, _, name = start.partition("::")
    files = [file for file in FILES if file.startswith(path)]
    assert files
    assert not name or f"def {name}(" in (ROOT / path).read_text()
    assert not name or files == [path]


@pytest.mark.parametrize("without_slow", [True, False])
def test_every_file_is_of_exactly_one_process_unless_it_is_slow(without_slow: bool) -> None:
    shares = divided(PROCESSES, without_slow)
    for file in FILES:
        owners = [share for share in shares if longest(file, SECONDS) in share]
        is_left_out = without_slow and longest(file, SLOW) != ""
        assert len(owners) == 1 or (is_left_out and not owners), file


@pytest.mark.parametrize("without_slow", [True, False])
def test_processes_have_about_as_much_to_do(without_slow: bool) -> None:
    sums = [sum(SECONDS[start] for start in share) for share in divided(PROCESSES, without_slow)]
    assert max(sums) <= 1.1 * min(sums)


def test_a_file_that_is_slow_has_a_line_of_its_own_in_the_table_of_seconds() -> None:
    """Otherwise a share would be made by seconds of tests that it leaves out."""
    files = [file for file in FILES if longest(file, SLOW)]
    assert [file for file in files if not longest(longest(file, SECONDS), SLOW)] == []


def collected(choice: str, *arguments: str) -> str:
    """Names of the tests that a process of `make test` or of `make test-all` would run."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.shares", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--collect-only", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        env=os.environ | {CHOICE: choice},
    )  # fmt: skip
    return done.stdout


def test_slow_tests_are_left_out_where_they_are_to_be_and_nowhere_else() -> None:
    assert "tests/chaos/test_chaos.py" not in collected("fast", "tests/chaos", "tests/witness")
    assert "tests/witness/" in collected("fast", "tests/chaos", "tests/witness")
    assert "tests/chaos/test_chaos.py" in collected("all", "tests/chaos")
