"""A compromised policy process or reader can do nothing of the escape table except its own work.

The program is the product's up to its walls, and so are they: see tests/support/escape_program.py.
"""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from ipc.settings import Settings
from supervisor.children.walls import find_walls
from supervisor.programs import INTERPRETER
from tests.support.escape_steps import IS_X86
from tests.support.escape_surroundings import surroundings
from tests.support.escape_table import OLD_CALL, ROWS, Row

pytestmark = pytest.mark.skipif(not IS_X86, reason="the steps know the numbers of system calls of x86_64 alone")

MAY = {
    # SQLite reads its file; the policy process sets the timer that ends it, whose signal has a default.
    "workers.rego.main": {"catch the signal of the filter"},
    "notary.reader": {"open the ledger"},
}
CASES = [
    pytest.param(program, row, id=f"{program}: {row.name}")
    for program, own in MAY.items()
    for row in ROWS
    if row.name not in own | {OLD_CALL}
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The result of every row in each program."""
    by_program = {}
    for program in MAY:
        outside: Path = tmp_path_factory.mktemp("escape")
        more = (str(outside / "ledger.sqlite3"),) if program == "notary.reader" else ()
        with surroundings(outside) as facts:
            by_program[program] = tried(program, facts, *more)
    return by_program


def tried(program: str, facts: dict[str, object], *more: str) -> dict[str, str]:
    """Start a program that tries every row."""
    walls = find_walls(Settings(state_dir=str(facts["outside"]), public_base_url="http://h"))
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with ours, theirs, os.fdopen(reading) as report:
        process = subprocess.Popen(
            [
                *INTERPRETER, "tests.support.escape_program", str(writing), json.dumps(facts), program, "--channel-fd",
                str(theirs.fileno()), "--parent", str(os.getpid()), "--walls", str(walls), *more,
            ],
            pass_fds=(theirs.fileno(), writing), cwd="/", stdin=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(writing)
        by_row: dict[str, str] = json.loads(report.read())
        assert process.wait(60) == 0
    return by_row


@pytest.mark.parametrize(("program", "row"), CASES)
def test_no_program_escapes(outcomes: dict[str, dict[str, str]], program: str, row: Row) -> None:
    assert outcomes[program][row.name] in row.allowed
