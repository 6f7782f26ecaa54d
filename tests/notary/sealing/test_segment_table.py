"""Every row of the table "What is found in sealed segments" of docs/evidence.md is tried."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.notary.sealing.segment_table import CHANGES, ROWS, AuditedSegments, Change, checked, made, sql

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


FLIPS = 24


@pytest.fixture
def whole(original: AuditedSegments, tmp_path: Path) -> AuditedSegments:
    return original.copy(tmp_path / "copy")


def of_the_ledger(statement: str) -> Change:
    def change(whole: AuditedSegments, _other: AuditedSegments) -> None:
        with closing(sqlite3.connect(whole.ledger)) as ledger, ledger:
            assert ledger.execute(statement).rowcount > 0

    return change


OTHERS: dict[str, Change] = {
    "its keys": sql("UPDATE meta SET value = replace(value, '+', '-') WHERE key = 'segment_keys'"),
    "a trigger": sql("CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END"),
    "the ledger's own beginning": of_the_ledger("DELETE FROM meta WHERE key = 'sealed'"),
    "the ledger's own end": of_the_ledger("INSERT INTO meta (key, value) VALUES ('segment_end', '{\"events\":1}')"),
    "an event moved before the cut": of_the_ledger(
        "UPDATE events SET seq = 3 WHERE seq = (SELECT max(seq) FROM events)"
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_change_is_found(whole: AuditedSegments, name: str) -> None:
    OTHERS[name](whole, whole)
    code, told = whole.whole()
    assert (code, "is broken" in told) == (8, True), told


def test_a_segment_does_not_count_as_the_ledger(whole: AuditedSegments) -> None:
    last = whole.folder / "last"
    whole.segments[1].rename(last)
    code, told = checked(last, "--segments", whole.out, "--keys", whole.keys)
    assert (code, "is a segment, and not the ledger" in told) == (8, True), told


def test_a_segment_that_was_cut_can_not_be_read(whole: AuditedSegments) -> None:
    data = whole.segments[1].read_bytes()
    whole.segments[1].write_bytes(data[: len(data) // 2])
    assert whole.whole()[0] == 69


def test_any_flipped_byte_of_a_segment_is_found(whole: AuditedSegments) -> None:
    chosen = random.Random(7)
    for segment in whole.segments:
        data = segment.read_bytes()
        for _ in range(FLIPS):
            at = chosen.randrange(len(data))
            segment.write_bytes(data[:at] + bytes([data[at] ^ 1 << chosen.randrange(8)]) + data[at + 1 :])
            code, told = whole.whole()
            assert code in (8, 69), f"byte {at}: {told}"
        segment.write_bytes(data)
