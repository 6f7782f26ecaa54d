"""Processes for the tests of the database."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a role of children.py; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start_child(role: str, path: Path, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.notary.backends.children", role, str(path), *arguments]
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(child)
        return child

    yield start_child
    for child in started:
        child.kill()
        child.communicate(timeout=120)


def line_of(child: "subprocess.Popen[str]") -> str:
    """The next thing that a child says."""
    assert child.stdout is not None
    return child.stdout.readline().strip()
