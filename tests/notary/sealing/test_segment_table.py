"""Every row of the table "What is found in sealed segments" of docs/evidence.md is tried."""

from pathlib import Path

import pytest

from tests.notary.sealing.segment_table import CHANGES, ROWS, AuditedSegments, made

CASES = [(row, number) for row, changes in CHANGES.items() for number in range(len(changes))]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> AuditedSegments:
    return made(tmp_path_factory.mktemp("original") / "state")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> AuditedSegments:
    return made(tmp_path_factory.mktemp("other") / "state")


def test_in_whole_segments_nothing_is_found(original: AuditedSegments) -> None:
    assert len(original.segments) == 2
    assert original.verdicts() == ("not found",) * 4


@pytest.mark.parametrize(("row", "number"), CASES, ids=[f"{row} {number}" for row, number in CASES])
def test_a_change_is_found_by_those_that_the_document_names(
    original: AuditedSegments, other: AuditedSegments, tmp_path: Path, row: str, number: int
) -> None:
    whole = original.copy(tmp_path / "copy")
    CHANGES[row][number](whole, other)
    assert whole.verdicts() == ROWS.get(row)


def test_each_row_of_the_document_is_tried() -> None:
    assert set(ROWS) == set(CHANGES)
