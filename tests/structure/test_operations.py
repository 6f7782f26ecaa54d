"""docs/operations.md names every exit code, and log lines that there are."""

import re
from pathlib import Path

import pytest

from ipc.process.exits import Exit

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
ROOMS = ("contract", "ipc", "supervisor", "frontend", "notary", "workers", "broker", "exporter")
CODE = (ROOT / "launch.py").read_text() + "\n".join(
    path.read_text() for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))
)
LINES = [
    line
    for row in re.findall(r"^\| (`.+`) \| [a-z, ]+ \|", PAGE.partition("## Log lines")[2], re.MULTILINE)
    for line in re.findall(r"`([^`]+)`", row)
]
OPEN = re.compile(r"NAME|PROFILE|MODULE| N |…")
"""The placeholder for a name in a line."""


@pytest.mark.parametrize("code", Exit, ids=lambda code: code.name)
def test_every_exit_code_has_a_row_and_its_name(code: Exit) -> None:
    table = PAGE.partition("## Exit codes")[2].partition("## With systemd")[0]
    assert re.search(rf"^\| {code.value} \|", table, re.MULTILINE)
    assert f"`{code.name}`" in table


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_a_log_line_that_is_told_of_is_written_somewhere(line: str) -> None:
    parts = [part.strip(" :;,") for part in OPEN.split(line)]
    assert all(part in CODE for part in parts), line


def test_the_tables_of_lines_are_read() -> None:
    assert len(LINES) > 50
