"""The tests of `make quick`: `pytest -p tests.support.quick`. Examples alone, and every test stays within this process.

Owns the choice, made from the code of the tests alone; `make test` never loads this. No gateway is started because no
process is: a start that the choice did not foresee fails its test.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.starts import starts_processes

TESTS = Path(__file__).resolve().parents[1]
WHOLE = ("chaos", "conformance", "faults", "integration", "sdk", "gatectl")
"""Folders whose tests are about running gateways and about clients of them: they need not even be imported."""
LARGE = ("hypothesis", "large")
"""Marks of what takes long within this process."""
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out whole folders."""
    return True if collection_path.parent == TESTS and collection_path.name in WHOLE else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out properties, which try hundreds of examples, what is large, and what starts processes, itself or by a
    fixture."""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_left = any(item.get_closest_marker(name) for name in LARGE) or starts(item)
        (left if is_left else kept).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_collection_finish() -> None:
    """Watch for started processes from here on: system calls of libraries at their import belong to no test."""
    sys.addaudithook(refuse_processes)


def starts(item: pytest.Item) -> bool:
    """Whether the test's function, or a fixture that it asks for, starts processes."""
    assert isinstance(item, pytest.Function)
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    functions = [item.function, *(definition.func for definitions in fixtures for definition in definitions)]
    return starts_processes(functions, item.function.__module__)


def refuse_processes(event: str, _arguments: tuple[Any, ...]) -> None:
    """An audit hook. Raises AssertionError where a process is about to start."""
    if event in STARTS:
        raise AssertionError("this test starts a process: let tests/support/starts.py see it")
