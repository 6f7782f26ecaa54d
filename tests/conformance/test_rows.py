"""The rows themselves: every row has a test, every test a row, and the document says so."""

from pathlib import Path

import pytest

from tests.conformance.contract import TABLES
from tests.conformance.listing import lines_of
from tests.conformance.report import ROOT, all_rows, collect, document, proofs

Collected = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> Collected:
    """(row, node id, mode) of every test: from this very run where it has all of them, else collected anew."""
    folder = Path(__file__).parent
    mine = [item for item in request.session.items if item.path.parent == folder]
    option = request.config.option
    is_whole = not (option.keyword or option.markexpr or any("::" in one for one in request.config.args))
    if is_whole and {item.path for item in mine} == set(folder.glob("test_*.py")):
        return [line for item in mine for line in lines_of(item)]
    return collect()


def test_every_row_of_the_contract_has_a_test(collected: Collected) -> None:
    assert not sorted(all_rows() - {row for row, _, _ in collected})


def test_no_test_names_an_unknown_row(collected: Collected) -> None:
    assert not sorted({(row, node) for row, node, _ in collected if row not in all_rows()})


def test_no_test_names_a_row_twice(collected: Collected) -> None:
    named = [(row, node) for row, node, _ in collected]
    assert len(named) == len(set(named))


def test_no_two_tables_have_one_name() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)


def test_the_document_is_what_the_tests_say(collected: Collected) -> None:
    text = document(proofs(collected))
    assert (ROOT / "docs" / "conformance.md").read_text() == text, "run `python -m tests.conformance.report`"
