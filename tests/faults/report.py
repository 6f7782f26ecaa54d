"""`python -m tests.faults.report` (`make failure-modes`): write docs/failure-modes.md from the table of faults.

`--check` writes nothing and fails when the document is stale. That the table is true is proven by
tests/faults/test_matrix.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.faults.table import TABLES
from tests.faults.table.rows import HEALTHY, OPERATIONS, Refused, Row, Table

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "failure-modes.md"
INTRO = f"""\
# When something fails

The gateway's answers while a dependency fails, the signs of the failure, and the remedy. No fault
leads to an allow. Refused requests can be sent again once the fault is over: nothing has to be restarted, what was
held waits, budgets are exact, and the evidence is whole.

Every line is proven by a test on a real gateway and the real server (`tests/faults/test_matrix.py`), with a proxy
between them that refuses, hangs, resets, delays and talks nonsense; `make failure-modes` writes this page. The codes
are explained in `docs/errors.md`, the metrics in `docs/metrics.md`. Each answer of 5xx has a line in the log with its
code and the trace id of its header `X-Trace-Id`.

Asked are: {", ".join(OPERATIONS)}.
**What is not named is answered as while all is well**: 200, readiness `ready`, status `ok`. A dependency that is known
to be down is asked nothing for further calls, which are refused at once; where a fault is met first by a call, that
call waits for its deadline.
"""


def document() -> str:
    """The text of docs/failure-modes.md."""
    return "\n".join([INTRO, *("\n".join(_section(table)) for table in TABLES)])


def _section(table: Table) -> Iterator[str]:
    yield f"## {table.dependency[0].upper()}{table.dependency[1:]}\n"
    yield f"{table.intro}\n"
    yield "| fault | what is seen | answers | metrics | log | what to do |"
    yield "|---|---|---|---|---|---|"
    for fault, row in table.rows.items():
        if isinstance(row, Row):
            log = f"`{row.log}`" if row.log else "nothing"
            yield _line(fault, row.seen, _answers(row), _metrics(row) or "nothing", log, row.do)
        elif isinstance(row, Refused):
            yield _line(
                fault, row.seen, f"the start ends with exit code {row.exit_code}", "none", f"`{row.log}`", row.do
            )
    reasons = [f"*{fault}*: {row}." for fault, row in table.rows.items() if isinstance(row, str)]
    if reasons:
        yield f"\nNot in the table: {' '.join(reasons)}"
    yield ""


def _answers(row: Row) -> str:
    """The differences from a run without faults; operations with one answer are grouped."""
    together: dict[str, list[str]] = {}
    for operation in OPERATIONS:
        if row.answer(operation) != HEALTHY[operation]:
            together.setdefault(row.answer(operation), []).append(operation)
    return "<br>".join(
        f"{' or '.join(map(_answer, answer.split(' or ')))}: {', '.join(operations)}"
        for answer, operations in together.items()
    ) or "as ever"  # fmt: skip


def _answer(answer: str) -> str:
    status, _, word = answer.partition(" ")
    return f"{status} `{word}`"


def _metrics(row: Row) -> str:
    told = (one.rpartition(" ") for one in row.metrics)
    return "<br>".join(f"`{name}` {'rises' if value == 'rises' else f'is {value}'}" for name, _, value in told)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def main(arguments: list[str]) -> int:
    """Write the document, or with `--check` compare it; 0 when it is right."""
    if "--check" not in arguments:
        DOCUMENT.write_text(document())
        return 0
    if DOCUMENT.is_file() and DOCUMENT.read_text() == document():
        return 0
    print(f"{DOCUMENT.relative_to(ROOT)} is stale: run `make failure-modes`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
