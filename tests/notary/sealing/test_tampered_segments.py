"""The check finds a change of a segment, or among several segments."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.notary.running import Running
from tests.notary.sealing.sealed_ledger import keys_of, seal_age, verify, write_ages

FLIPS = 24
BENT = "CAST(replace(CAST(bytes AS TEXT), '2026', '2025') AS BLOB)"


class SealedFolder:
    """A ledger, two segments of it, and its keys."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.keys, self.out = folder / "ledger.sqlite3", folder / "keys.json", folder / "segments"

    @property
    def segments(self) -> list[Path]:
        return sorted(self.out.glob("segment-*"))

    def check(self) -> tuple[int, str]:
        """The whole chain."""
        ran = verify(self.ledger, "--segments", self.out, "--keys", self.keys)
        return ran.returncode, ran.stdout

    def copy(self, folder: Path) -> "SealedFolder":
        shutil.copytree(self.ledger.parent, folder)
        return SealedFolder(folder)


def made(folder: Path) -> SealedFolder:
    notary = Running(folder / "state")
    write_ages(notary)
    whole = SealedFolder(folder / "state")
    keys_of(notary, whole.keys)
    seal_age(notary, whole.out, 1)
    seal_age(notary, whole.out, 2)
    notary.close()
    return whole


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> SealedFolder:
    return made(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> SealedFolder:
    return made(tmp_path_factory.mktemp("other"))


@pytest.fixture
def whole(original: SealedFolder, tmp_path: Path) -> SealedFolder:
    return original.copy(tmp_path / "copy")


def execute(*statements: str) -> Callable[[SealedFolder, SealedFolder], None]:
    def change(whole: SealedFolder, _other: SealedFolder) -> None:
        with closing(sqlite3.connect(whole.segments[1])) as segment, segment:
            for statement in statements:
                segment.execute(statement)

    return change


def remove_first(whole: SealedFolder, _other: SealedFolder) -> None:
    whole.segments[0].unlink()


def remove_last(whole: SealedFolder, _other: SealedFolder) -> None:
    whole.segments[1].unlink()


def swap(whole: SealedFolder, _other: SealedFolder) -> None:
    first, last = whole.segments
    aside = first.with_name("aside")
    first.rename(aside)
    last.rename(first)
    aside.rename(last)


def truncate(whole: SealedFolder, _other: SealedFolder) -> None:
    data = whole.segments[1].read_bytes()
    whole.segments[1].write_bytes(data[: len(data) // 2])


def bring_other(whole: SealedFolder, other: SealedFolder) -> None:
    shutil.copy(other.segments[0], whole.segments[0])


def bring_ledger_of_before(whole: SealedFolder, _other: SealedFolder) -> None:
    with closing(sqlite3.connect(whole.ledger)) as ledger, ledger:
        ledger.execute("DELETE FROM meta WHERE key = 'sealed'")


def leave_an_event(whole: SealedFolder, _other: SealedFolder) -> None:
    with closing(sqlite3.connect(whole.ledger)) as ledger, ledger:
        ledger.execute("UPDATE events SET seq = 3 WHERE seq = (SELECT max(seq) FROM events)")


CHANGES = {
    "an event's byte": execute(f"UPDATE events SET bytes = {BENT} WHERE seq = 12"),
    "an event's column": execute("UPDATE events SET principal = 'x' WHERE seq = 12"),
    "an event gone": execute("DELETE FROM events WHERE seq = 12"),
    "the last events gone": execute("DELETE FROM events WHERE seq > 18"),
    "a receipt's byte": execute(f"UPDATE receipts SET bytes = {BENT}"),
    "a receipt gone": execute("DELETE FROM receipts WHERE seq = (SELECT min(seq) FROM receipts)"),
    "an intent's column": execute("UPDATE intents SET principal = 'x'"),
    "an intent gone": execute("DELETE FROM intents WHERE seq = (SELECT max(seq) FROM intents)"),
    "a hash of the tree": execute("UPDATE tiles SET hashes = zeroblob(length(hashes))"),
    "the checkpoint": execute("UPDATE checkpoints SET note = replace(note, 'unresolved=0', 'unresolved=1')"),
    "the checkpoint gone": execute("DELETE FROM checkpoints"),
    "where it begins": execute(
        "UPDATE meta SET value = replace(value, '\"open\":0', '\"open\":1') WHERE key = 'sealed'"
    ),
    "where it ends": execute("DELETE FROM meta WHERE key = 'segment_end'"),
    "its keys": execute("UPDATE meta SET value = replace(value, '+', '-') WHERE key = 'segment_keys'"),
    "a trigger": execute("CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END"),
    "the first segment gone": remove_first,
    "the last segment gone": remove_last,
    "two segments exchanged": swap,
    "a segment of another ledger": bring_other,
    "the ledger's own beginning": bring_ledger_of_before,
    "an event moved before the cut": leave_an_event,
}


def test_whole_segments_verify(original: SealedFolder) -> None:
    code, told = original.check()
    assert code == 0, told


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(whole: SealedFolder, other: SealedFolder, name: str) -> None:
    CHANGES[name](whole, other)
    code, told = whole.check()
    assert (code, "is broken" in told) == (8, True), told


def test_a_segment_that_was_cut_can_not_be_read(whole: SealedFolder, other: SealedFolder) -> None:
    truncate(whole, other)
    assert whole.check()[0] == 69


def test_any_flipped_byte_of_a_segment_is_found(whole: SealedFolder) -> None:
    chosen = random.Random(7)
    for segment in whole.segments:
        data = segment.read_bytes()
        for _ in range(FLIPS):
            at = chosen.randrange(len(data))
            segment.write_bytes(data[:at] + bytes([data[at] ^ 1 << chosen.randrange(8)]) + data[at + 1 :])
            code, told = whole.check()
            assert code in (8, 69), f"byte {at}: {told}"
        segment.write_bytes(data)
