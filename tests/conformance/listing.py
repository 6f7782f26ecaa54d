"""The description of a collected test; as a pytest plugin it prints that, for report.py."""

import pytest


def lines_of(item: pytest.Item) -> list[tuple[str, str, str]]:
    """(row, node id, kind of gateway) for each row that the test names; `none` for a test without a row."""
    if item.path.stem == "test_rows":
        return []
    callspec = getattr(item, "callspec", None)
    mode = callspec.params.get("mode", "") if callspec else ""
    if not mode and "run" in getattr(item, "fixturenames", ()):
        mode = "run"
    rows = [(name, mark.kwargs["place"]) for mark in item.iter_markers("row") for name in mark.args] or [("none", "")]
    return [(row, item.nodeid, mode or place) for row, place in rows]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Print a line a row and test."""
    for item in items:
        for line in lines_of(item):
            print("row", *line, sep="\t")
