"""Which tests are slow, which process runs which, and how many examples are tried: each is declared in one place."""

import bisect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.properties import CHOICE
from tests.support.shares import TIMES, is_slow, seconds
from tests.support.times import Time, cuts, measured

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
OWN_NUMBERS = {"support/properties.py", "integration/test_schemathesis.py", "structure/test_shares.py"}
"""Schemathesis tries three requests by endpoint and field, since operators' rates let no more through in a minute."""
PROCESSES = 3


def test_no_property_has_a_number_of_examples_of_its_own() -> None:
    named = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if "max_examples" in path.read_text()}
    assert named == OWN_NUMBERS


def test_each_file_whose_time_is_recorded_is_there() -> None:
    assert [path for path in TIMES if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("without_slow", [True, False])
def test_processes_have_about_as_much_to_do(without_slow: bool) -> None:
    by_file = seconds(without_slow)
    begins = cuts(by_file, PROCESSES)
    sums = [0.0] * PROCESSES
    for path, time in by_file.items():
        sums[bisect.bisect_right(begins, path)] += time
    assert max(sums) <= 1.2 * min(sums)


@pytest.mark.parametrize(
    ("time", "slow"),
    [
        (Time(tests=10, all=40, fast=5), False),
        (Time(tests=10, all=40, fast=6), True),
        (Time(tests=500, all=61, fast=61), True),
    ],
)
def test_a_file_is_slow_by_seconds_a_test_or_by_all_of_them(time: Time, slow: bool) -> None:
    assert time.is_slow is slow


def test_times_are_read_from_what_pytest_prints() -> None:
    said = """
    ===== slowest durations =====
    1.50s setup    tests/a/test_b.py::test_c[x::y]
    0.25s call     tests/a/test_b.py::test_c[x::y]
    0.25s call     tests/a/test_b.py::test_d
    12 passed in 3.00s
    """
    assert measured(said.splitlines()) == {"tests/a/test_b.py": (2, 2.0)}


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


def test_a_file_whose_time_is_not_recorded_is_not_slow() -> None:
    assert is_slow("tests/chaos/test_chaos.py")
    assert not is_slow("tests/witness/test_of_tomorrow.py")
