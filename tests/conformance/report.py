"""`python -m tests.conformance.report`: write docs/conformance.md from the rows of the contract and from the tests.

Name the test that proves each row, and the listeners on which it runs. `--check` writes nothing and fails when the
document is stale.
"""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.conformance.contract import TABLES
from tests.conformance.contract.table import Table

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "conformance.md"
PLACES = {"dev": "TCP", "run": "Unix", "front": "front", "": "start"}
"""Where a test speaks to the gateway: the merged address of `gateway dev`, the sockets of `gateway run`, a front
within the test, or nowhere."""

Proofs = dict[str, dict[str, set[str]]]
"""Row -> test (`module::function`) -> places."""


def proofs(collected: list[tuple[str, str, str]]) -> Proofs:
    """From (row, node id, mode) of every collected test."""
    by_row: Proofs = defaultdict(lambda: defaultdict(set))
    for name, node, mode in collected:
        path, _, function = node.partition("::")
        test = f"{Path(path).stem}::{function.partition('[')[0]}"
        by_row[name][test].add(PLACES[mode])
    return by_row


def collect() -> list[tuple[str, str, str]]:
    """(row, node id, mode) of every test below this folder, by pytest itself, in a process of its own."""
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.conformance.listing", here],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    lines = [line.removeprefix("row\t") for line in done.stdout.splitlines() if line.startswith("row\t")]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [(row, node, mode) for row, node, mode in (line.split("\t") for line in lines)]


def all_rows() -> set[str]:
    """Ids of everything that a test must prove."""
    return {f"{table.name}/{name}" for table in TABLES for name in table.rows}


def document(found: Proofs) -> str:
    """The text of docs/conformance.md."""
    count = sum(len(table.rows) for table in TABLES)
    both = sum(places_of(found, f"{table.name}/{name}") == {"TCP", "Unix"} for table in TABLES for name in table.rows)
    intro = f"""\
# The contract, row by row

{count} rows of the interface, each with the test that proves it against a running gateway: on the two Unix sockets of
`gateway run` with a production configuration (*Unix*), on the merged TCP address of `gateway dev` (*TCP*), or on both,
where the mode decides the outcome ({both} rows). Rows that need an upstream on the same machine are proven on TCP,
since production connects to no such address. *start* is what the command line refuses before anything listens,
*front* what needs a front with a fault of its own, within the test.

`tests/conformance/contract/` says what must hold; `python -m tests.conformance.report` writes this page from it and
from the tests. A test fails when the page is stale, when a row has no test, and when a test names no row.
"""
    return "\n".join([intro, *(_table(table, found) for table in TABLES)])


def places_of(found: Proofs, row: str) -> set[str]:
    """Where the row is proven."""
    return set().union(*found[row].values()) if row in found else set()


def _table(table: Table, found: Proofs) -> str:
    lines = [f"## {table.title}\n", "| row | what holds | proven by | where |", "|---|---|---|---|"]
    for name, statement in table.rows.items():
        row = f"{table.name}/{name}"
        tests = "<br>".join(f"`{test}`" for test in sorted(found[row])) if row in found else "**nothing**"
        where = ", ".join(sorted(places_of(found, row))) or "nowhere"
        lines.append(f"| `{row}` | {_cell(statement)} | {tests} | {where} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the document, or with `--check` compare it; 0 when it is right."""
    text = document(proofs(collect()))
    if "--check" in arguments:
        if DOCUMENT.is_file() and DOCUMENT.read_text() == text:
            return 0
        print(f"{DOCUMENT.relative_to(ROOT)} is stale: run `python -m tests.conformance.report`", file=sys.stderr)
        return 1
    DOCUMENT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
