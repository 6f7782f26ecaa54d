"""Divides the tests among processes, and leaves slow ones out: `pytest -p tests.support.shares --share 2/3 tests`.

Owns the two tables. Each names tests by the start of their path; of several starts the longest decides. `make test-all`
and pytest by itself run everything, `make test` runs what is not in SLOW.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.properties import CHOICE

ROOT = Path(__file__).resolve().parents[2]
SLOW = {
    "tests/chaos/": "kills, freezes and starves gateways under load",
    "tests/contrib/container/": "builds the tree of an image",
    "tests/contrib/kubernetes/test_rolling_restart.py": "replaces two pods under load",
    "tests/faults/": "every fault of every dependency, with its outage and the recovery",
    "tests/notary/sealing/test_kills.py": "kills a program at each of thirty steps",
    "tests/integration/test_descriptors.py": "kills each kind of child until one more starts at once",
    "tests/integration/test_evidence_walk.py": "types every command of a document",
    "tests/integration/test_fairness.py": "floods beside polite agents",
    "tests/integration/test_first_minute.py": "types every command of two documents",
    "tests/integration/test_free_space.py": "fills disks",
    "tests/integration/test_front_deaths.py": "kills fronts under load, four times each",
    "tests/integration/test_installed.py": "builds wheels and installs them",
    "tests/integration/test_key_rotation.py": "rotates every key under load",
    "tests/integration/test_own_providers.py": "builds providers in four languages",
    "tests/integration/test_process_ends.py": "ends each kind of process, and some again and again",
    "tests/integration/test_schemathesis.py": "tries every endpoint, as slowly as its rate wants it",
    "tests/integration/test_second_life.py": "kills whole gateways, and starts them again",
    "tests/integration/test_survival.py": "kills whole gateways, and starts them again",
    "tests/integration/test_two_hosts.py": "several hosts, with a network and servers of their own",
    "tests/notary/backends/postgres/test_faults.py": "every fault of a PostgreSQL, with its outage and the recovery",
    "tests/notary/backends/postgres/test_kills.py": "a kill at each step of a unit",
    "tests/notary/backends/postgres/test_silence.py": "a PostgreSQL that hangs, for as long as it is waited for",
    "tests/notary/backends/redis/test_faults.py": "every fault of a Redis, with its outage and the recovery",
    "tests/notary/backends/redis/test_silence.py": "a Redis that hangs, for as long as it is waited for",
    "tests/notary/backends/redis/test_undone.py": "a kill at each step of a unit",
    "tests/notary/backends/redis/test_kills.py": "a kill at each step of a unit",
    "tests/notary/backends/redis/test_sentinels.py": "waits for failovers",
    "tests/notary/reading/test_long_walks.py": "a ledger of seventy thousand events",
    "tests/notary/test_kills_at_each_step.py": "a kill at each flush and each line",
    "tests/supervisor/commands/test_launcher.py": "starts every command in odd surroundings",
    "tests/systemd/": "boots a systemd",
}
"""Start of a path, or of a test's whole name -> why these tests are slow by nature."""
SECONDS = {
    "tests/": 90,
    "tests/chaos/": 64,
    "tests/conformance/": 85,
    "tests/console/": 56,
    "tests/contrib/": 25,
    "tests/contrib/container/": 3,
    "tests/contrib/kubernetes/": 34,
    "tests/contrib/kubernetes/test_rolling_restart.py": 27,
    "tests/edge/": 113,
    "tests/escape/": 21,
    "tests/faults/": 35,
    "tests/frontend/": 179,
    "tests/frontend/calls/": 44,
    "tests/frontend/http/": 10,
    "tests/gatectl/": 55,
    "tests/integration/": 341,
    "tests/integration/test_descriptors.py": 17,
    "tests/integration/test_evidence_walk.py": 4,
    "tests/integration/test_fairness.py": 6,
    "tests/integration/test_first_minute.py": 7,
    "tests/integration/test_free_space.py": 13,
    "tests/integration/test_front_deaths.py": 15,
    "tests/integration/test_h": 52,
    "tests/integration/test_installed.py": 8,
    "tests/integration/test_key_rotation.py": 14,
    "tests/integration/test_own_providers.py": 73,
    "tests/integration/test_p": 52,
    "tests/integration/test_process_ends.py": 12,
    "tests/integration/test_s": 66,
    "tests/integration/test_schemathesis.py": 19,
    "tests/integration/test_second_life.py": 5,
    "tests/integration/test_survival.py": 10,
    "tests/integration/test_two_hosts.py": 19,
    "tests/notary/": 181,
    "tests/notary/backends/": 85,
    "tests/notary/sealing/test_kills.py": 24,
    "tests/notary/backends/postgres/test_faults.py": 14,
    "tests/notary/backends/postgres/test_kills.py": 6,
    "tests/notary/backends/postgres/test_silence.py": 2,
    "tests/notary/backends/redis/test_faults.py": 1,
    "tests/notary/backends/redis/test_silence.py": 2,
    "tests/notary/backends/redis/test_undone.py": 6,
    "tests/notary/backends/redis/test_kills.py": 1,
    "tests/notary/backends/redis/test_sentinels.py": 12,
    "tests/notary/reading/": 20,
    "tests/notary/reading/test_long_walks.py": 5,
    "tests/notary/test_kills_at_each_step.py": 18,
    "tests/policy/": 30,
    "tests/providers/": 3,
    "tests/sdk/": 26,
    "tests/structure/": 37,
    "tests/supervisor/": 167,
    "tests/supervisor/commands/test_launcher.py": 19,
    "tests/systemd/": 76,
    "tests/workers/": 50,
}
"""Start of a path -> the time of these tests, in units of 4 s of one run on two busy processors. The shares are made
by these numbers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption("--share", default="1/1", help="which share of the tests to run: 2/3 is the second of three")


def pytest_configure(config: pytest.Config) -> None:
    """Divide the tests, once for the process."""
    number, _, count = config.getoption("share").partition("/")
    config.stash[OURS] = divided(int(count), is_fast())[int(number) - 1]


OURS = pytest.StashKey[set[str]]()
"""Starts of the paths of this process."""


def is_fast() -> bool:
    """Whether slow tests are left out."""
    return os.environ.get(CHOICE) == "fast"


def divided(count: int, without_slow: bool) -> list[set[str]]:
    """Starts of paths by process: the longest first, each to the process that has least to do."""
    shares: list[set[str]] = [set() for _ in range(count)]
    sums = [0.0] * count
    for start, seconds in sorted(SECONDS.items(), key=lambda one: (-one[1], one[0])):
        if not (without_slow and longest(start, SLOW)):
            least = sums.index(min(sums))
            shares[least].add(start)
            sums[least] += seconds
    return shares


def longest(name: str, starts: Iterable[str]) -> str:
    """The longest of these starts that this name has; empty if it has none."""
    return max((start for start in starts if name.startswith(start)), key=len, default="")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of other processes, and slow ones, without importing them."""
    if collection_path.suffix != ".py" or not collection_path.is_relative_to(ROOT):
        return None
    path = collection_path.relative_to(ROOT).as_posix()
    is_left_out = longest(path, SECONDS) not in config.stash[OURS] or (is_fast() and longest(path, SLOW))
    return True if is_left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests of files whose other tests are fast."""
    slow = [item for item in items if is_fast() and longest(item.nodeid, SLOW)]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if not (is_fast() and longest(item.nodeid, SLOW))]
