"""Divides the tests among processes, and leaves slow ones out: `pytest -p tests.support.shares --share 2/3 tests`.

Derived from measured times (times.py): `make test` runs what is not slow, `make test-all` and pytest by itself run
everything. Each process runs the files from one path to another.
"""

import bisect
import os
from pathlib import Path

import pytest

from tests.support.properties import CHOICE
from tests.support.times import cuts, recorded

ROOT = Path(__file__).resolve().parents[2]
TIMES = recorded()
BEGINS = pytest.StashKey[list[str]]()
"""The paths at which the second and further processes begin."""
NUMBER = pytest.StashKey[int]()
"""Which of them this process is, from 0."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption("--share", default="1/1", help="which share of the tests to run: 2/3 is the second of three")


def pytest_configure(config: pytest.Config) -> None:
    """Divide the tests, once for the process."""
    number, _, count = config.getoption("share").partition("/")
    config.stash[NUMBER] = int(number) - 1
    config.stash[BEGINS] = cuts(seconds(is_fast()), int(count))


def is_fast() -> bool:
    """Whether slow tests are left out."""
    return os.environ.get(CHOICE) == "fast"


def is_slow(path: str) -> bool:
    """Whether `make test` leaves this file out."""
    return path in TIMES and TIMES[path].is_slow


def seconds(without_slow: bool) -> dict[str, float]:
    """Path of a file that is run -> how long it takes."""
    if without_slow:
        return {path: time.fast for path, time in TIMES.items() if not time.is_slow}
    return {path: time.all for path, time in TIMES.items()}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of other processes, and slow ones, without importing them."""
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(ROOT):
        return None
    path = collection_path.relative_to(ROOT).as_posix()
    begins = config.stash[BEGINS]
    is_anothers = bisect.bisect_right(begins, path) != config.stash[NUMBER]
    return True if is_anothers or (is_fast() and is_slow(path)) else None
