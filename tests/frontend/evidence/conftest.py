"""Ledgers and processes for the tests of evidence."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from frontend.evidence.sqlite import SqliteLedger

ROOT = Path(__file__).resolve().parents[3]

OpenLedger = Callable[..., Awaitable[SqliteLedger]]
Start = Callable[..., "subprocess.Popen[str]"]


def stored(path: Path, statement: str = "SELECT bytes FROM events ORDER BY seq") -> list[Any]:
    """Rows of a ledger's file, read by a stranger; a single column comes without its row."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return [row[0] if len(row) == 1 else row for row in connection.execute(statement)]


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    """Where the ledger of a test lies."""
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def open_ledger(ledger_path: Path) -> AsyncIterator[OpenLedger]:
    """Open the test's ledger, as one more front would."""
    opened: list[SqliteLedger] = []

    async def open_again(lock_seconds: float = 60.0) -> SqliteLedger:
        opened.append(await SqliteLedger.open(ledger_path, lock_seconds=lock_seconds))
        return opened[-1]

    yield open_again
    for ledger in opened:
        await ledger.close()


@pytest.fixture
async def ledger(open_ledger: OpenLedger) -> SqliteLedger:
    """An open ledger."""
    return await open_ledger()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a role of children.py; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start_child(role: str, path: Path, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.frontend.evidence.children", role, str(path), *arguments]
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(child)
        return child

    yield start_child
    for child in started:
        child.kill()
        child.communicate(timeout=120)
