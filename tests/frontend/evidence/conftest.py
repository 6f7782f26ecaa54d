"""Ledgers and processes for the tests of evidence."""

import os
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


def spoil(path: Path) -> None:
    """Write nonsense over half of the pages."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 4096 // 2 * 4096)
        file.write(os.urandom(size // 2 - 4096))


def commits_in_wal(path: Path) -> int:
    """Frames that end a transaction, in the WAL beside a ledger (SQLite's file format, section 4.1)."""
    wal = path.with_name(path.name + "-wal").read_bytes()
    header, count = wal[:32], 0
    for at in range(32, len(wal), 24 + 4096):
        count += wal[at + 8 : at + 16] == header[16:24] and wal[at + 4 : at + 8] != bytes(4)
    return count


def line_of(child: "subprocess.Popen[str]") -> str:
    """What a child says next."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


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
def connection(ledger: SqliteLedger, ledger_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of one's own to the file of an open ledger."""
    with closing(sqlite3.connect(ledger_path, isolation_level=None)) as connection:
        yield connection


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
