"""The report of the tests: a table for people, or TAP 14 for programs."""

import json
from pathlib import Path

from frontend.action_tests.form import ActionTest
from frontend.action_tests.running import TestReport
from frontend.files.problems import printable

_COLUMNS = ("", "TEST", "EXPECTED", "GOT")


def table(reports: list[TestReport]) -> str:
    """A row a test, the differences of a failed one below it, and how many there are of each."""
    rows = [_COLUMNS, *(_row(one) for one in reports)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines: list[str] = []
    for row, report in zip(rows, (None, *reports), strict=True):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        lines.append("  ".join((*padded, row[3])).rstrip())
        lines += [f"      {printable(one)}" for one in (report.differences if report else ())]
    failed = sum(bool(one.differences) for one in reports)
    lines.append(f"{len(reports)} test{'s' * (len(reports) != 1)}, {failed} failed")
    return "\n".join(lines) + "\n"


def tap(reports: list[TestReport]) -> str:
    """Test Anything Protocol, version 14."""
    lines = ["TAP version 14", f"1..{len(reports)}"]
    for number, one in enumerate(reports, 1):
        name = printable(_name(one.test)).replace("\\", "\\\\").replace("#", "\\#")
        lines.append(f"{'not ok' if one.differences else 'ok'} {number} - {name}")
        if one.differences:
            lines += ["  ---", f"  at: {json.dumps(f'{one.test.file}:{one.test.line}')}", "  differences:"]
            lines += [f"    - {json.dumps(text)}" for text in one.differences]
            lines.append("  ...")
    return "\n".join(lines) + "\n"


def _row(report: TestReport) -> tuple[str, str, str, str]:
    test = report.test
    expected = ", ".join(filter(None, (test.expect.decision or test.expect.error, test.outcome)))
    return "FAIL" if report.differences else "ok", printable(_name(test)), expected, printable(report.found)


def _name(test: ActionTest) -> str:
    return f"{Path(test.file).name.split('.')[0]}: {test.name}"
