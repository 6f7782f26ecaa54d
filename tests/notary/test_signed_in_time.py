"""Checkpoints as time passes: what is logged of them, what a failure costs, and which of them the database keeps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.clock import iso
from notary import checkpoint_file
from notary.checkpoints import Checkpoints
from notary.ledger.witnesses import Cosigned
from notary.opening import open_state
from notary.tree.checkpoint import Checkpoint
from notary.units.transaction import Transaction
from tests.notary.running import HandClock, settings_in
from tests.notary.samples import NOW, own_event
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS

HOUR = 3600.0
NOON = NOW - NOW % HOUR + HOUR / 2
"""Half past some hour: minutes around it are of the same one."""


class Signing:
    """A ledger that grows as the test says, and what signs its checkpoints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = HandClock()
        self.clock.time = NOON
        self.monotonic = 1000.0
        self.state, _ = open_state(settings_in(folder), self.clock, limits=LIMITS)
        self.made = Checkpoints(self.state, lambda: self.monotonic)

    def sign(self, *, grows: bool = True) -> Checkpoint | None:
        """A checkpoint of one event more."""
        if grows:
            with self.state.database.unit() as connection:
                unit = Transaction(self.state, connection)
                unit.append(own_event())
                unit.finish([])
            unit.commit()
        return self.made.make()

    def pass_by(self, seconds: float) -> None:
        self.monotonic += seconds
        self.clock.time += seconds

    def keep(self, size: int, age: float, note: str = "note") -> None:
        """Store a checkpoint that was signed `age` seconds ago."""
        row = (size, iso(self.clock.time - age), note)
        with self.state.database.unit() as connection:
            connection.execute("INSERT INTO checkpoints (size, time, note) VALUES (?, ?, ?)", row)

    def sizes(self) -> list[int]:
        """The sizes of the test's checkpoints that are still stored."""
        with self.state.database.unit(writes=False) as connection:
            rows = connection.execute("SELECT size FROM checkpoints WHERE size < 0 ORDER BY size DESC").fetchall()
        return [size for (size,) in rows]


@pytest.fixture
def signing(tmp_path: Path) -> Iterator[Signing]:
    signing = Signing(tmp_path)
    yield signing
    signing.state.database.close()


def test_a_line_a_minute_tells_how_far_the_log_is(signing: Signing) -> None:
    logged = []
    for seconds in (0, 1, 58, 1, 59, 1):
        signing.pass_by(seconds)
        with capture_logs() as lines:
            made = signing.sign()
        assert made is not None
        logged.append(len(lines))
        for line in lines:
            said = {"event": "checkpoint", "log_level": "info", "origin": "localhost", "size": made.size}
            assert line == said | {"root": made.root.hex()}
    assert logged == [1, 0, 0, 1, 0, 1]


def test_a_log_that_has_not_grown_is_not_signed_again(signing: Signing) -> None:
    first = signing.sign()
    signing.pass_by(60)
    assert signing.sign(grows=False) == first
    assert len((signing.folder / checkpoint_file.FILE_NAME).read_bytes().splitlines()) == 1


def test_a_failure_is_logged_once_and_so_is_its_end(signing: Signing) -> None:
    path = signing.folder / checkpoint_file.FILE_NAME
    for turn in range(2):
        path.unlink(missing_ok=True)
        path.mkdir()
        with capture_logs() as lines:
            assert [signing.sign() for _ in range(3)] == [None] * 3
        assert [(line["log_level"], line["event"]) for line in lines] == [
            ("error", "no checkpoint could be signed; evidence goes on without")
        ]
        assert lines[0]["cause"]
        path.rmdir()
        with capture_logs() as lines:
            made = [signing.sign(), signing.sign()]
        sizes = [line["size"] for line in lines if line["event"] == "checkpoints are signed again"]
        assert made[0] is not None
        assert sizes == [made[0].size] == [4 + 5 * turn]


def test_the_database_keeps_the_longest_note_of_each_hour_after_a_day(signing: Signing) -> None:
    day = 24 * HOUR
    for size, age, note in (
        (-1, day - 60, "n"), (-2, day - 120, "n"),  # not older
        (-3, day + 60, "n"), (-4, day + 120, "longer"), (-5, day + 180, "n"),
        (-6, 2 * day, "n"), (-7, 2 * day + HOUR, "n"), (-8, 2 * day + HOUR + 60, "longer"),
    ):  # fmt: skip
        signing.keep(size, age, note)
    assert signing.sign() is not None
    assert signing.sizes() == [-1, -2, -4, -6, -8]


def test_the_checkpoint_that_a_witness_cosigned_last_is_kept_at_any_age(signing: Signing) -> None:
    for size in (-1, -2, -3):
        signing.keep(size, 30 * 24 * HOUR, "longest" if size == -3 else "note")
    signing.state.witnesses.cosigned["city"] = Cosigned("key", -2, 0)
    assert signing.sign() is not None
    assert signing.sizes() == [-2, -3]


def test_old_checkpoints_are_searched_once_an_hour(signing: Signing) -> None:
    assert signing.sign() is not None
    signing.keep(-1, 48 * HOUR, "longer")
    signing.keep(-2, 48 * HOUR)
    signing.pass_by(60)
    assert signing.sign() is not None
    assert signing.sizes() == [-1, -2]
    signing.pass_by(HOUR)
    assert signing.sign() is not None
    assert signing.sizes() == [-1]
