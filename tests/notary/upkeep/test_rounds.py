"""Upkeep: when the journal is settled, what is over is forgotten, keys are followed and the WAL is cut."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frontend.deadlines import NotaryDeadlines
from ipc.operations.keys import FollowKeys
from ipc.operations.operation import Operation
from notary.backends.sqlite import FileLimits, connect
from notary.ledger.settling import SETTLED_AT
from notary.opening import open_state
from notary.operations.standing import EndStanding
from notary.operations.table import PERFORMERS
from notary.state import DEFAULT_LIMITS, NotaryState
from notary.store import holds, proofs
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task
from notary.upkeep.rounds import Upkeep
from tests.notary.running import HandClock, settings_in
from tests.notary.samples import changed, make_approval, make_note
from tests.support.ledger_file import file_of
from tests.support.logs import capture_logs
from tests.support.notary_thread import LIMITS

QUIET = 0.5


class Kept:
    """A notary without channels, whose time the test sets."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.now = HandClock(), 100.0
        limits = replace(LIMITS, quiet_seconds=QUIET, wal_seconds=60.0)
        self.state: NotaryState = open_state(settings_in(folder), self.clock, limits=limits)[0]
        self.units = TransactionRunner(self.state, PERFORMERS)
        self.perform(FollowKeys())  # the key set that was just published is news, too
        self.upkeep = Upkeep(self.state, lambda: self.now)

    def perform(self, *operations: Operation[Any]) -> None:
        self.units.perform([Task("front-1", number, one) for number, one in enumerate(operations, 1)])

    @property
    def unsettled(self) -> int:
        """Units that are in the journal alone."""
        assert self.state.unsettled is not None
        return len(self.state.unsettled.entries)

    def used(self) -> int:
        assert self.state.unsettled is not None
        return self.state.unsettled.used


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.state.database.close()


def test_a_wal_that_a_reader_made_long_is_cut_once_the_reader_has_gone(kept: Kept) -> None:
    file = file_of(kept.state.database)
    wal = file.with_name("ledger.sqlite3-wal")
    most = FileLimits().long_wal_bytes

    def round_of_upkeep() -> int:
        kept.now += 1.0
        kept.upkeep.due()
        return wal.stat().st_size

    with closing(connect(file, writes=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchall()
        while wal.stat().st_size <= most:
            with kept.state.database.unit() as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS filler (bytes BLOB)")
                connection.execute("INSERT INTO filler VALUES (zeroblob(8000000))")
        assert round_of_upkeep() > most
        reader.execute("ROLLBACK")
    assert not kept.state.has_erased
    assert round_of_upkeep() == 0


def test_a_round_is_made_once_a_second(kept: Kept) -> None:
    assert kept.upkeep.patience() == 1.0
    kept.now += 0.75
    assert kept.upkeep.patience() == 0.25
    assert kept.upkeep.due() is None
    kept.now += 0.25
    assert kept.upkeep.patience() == 0.0
    assert kept.upkeep.due() is None, "no key is new"
    assert kept.upkeep.patience() == 1.0
    kept.now += 9.0
    assert kept.upkeep.patience() == 0.0


def test_the_journal_is_settled_when_no_unit_has_come_for_a_while(kept: Kept) -> None:
    kept.perform(make_note())
    kept.upkeep.due()
    assert (kept.unsettled, kept.upkeep.patience()) == (1, QUIET)
    kept.now += 0.25
    kept.perform(make_note())
    kept.upkeep.due()
    kept.now += 0.25
    kept.upkeep.due()
    assert (kept.unsettled, kept.upkeep.patience()) == (2, 0.25)
    kept.now += 0.25
    kept.upkeep.due()
    assert (kept.unsettled, kept.used()) == (0, 0)


def test_a_journal_of_which_enough_is_used_is_settled_however_many_units_come(kept: Kept) -> None:
    kept.perform(make_note())
    kept.upkeep.due()
    while kept.used() < SETTLED_AT - 1:
        kept.perform(make_note())
    kept.upkeep.due()
    assert kept.unsettled > 0
    kept.perform(make_note())
    kept.upkeep.due()
    assert kept.unsettled == 0


def test_a_journal_that_can_not_be_settled_is_tried_again_a_second_later(kept: Kept) -> None:
    kept.perform(make_note())
    kept.upkeep.due()
    with connect(file_of(kept.state.database), writes=True) as stranger:
        stranger.execute("ALTER TABLE events RENAME TO elsewhere")
        kept.now += QUIET
        with capture_logs() as lines:
            kept.upkeep.due()
        assert [line["event"] for line in lines] == ["the journal could not be settled"]
        assert (kept.state.is_failing, kept.state.head, kept.state.unsettled) == (True, None, None)
        stranger.execute("ALTER TABLE elsewhere RENAME TO events")
    stranger.close()
    kept.perform(make_note())  # which settles what is there
    kept.perform(make_note())
    assert (kept.state.is_failing, kept.unsettled) == (False, 1)
    kept.upkeep.due()
    kept.now += 0.75
    assert (kept.upkeep.due(), kept.unsettled) == (None, 1)
    assert kept.upkeep.patience() == 0.25
    kept.now += 0.25
    assert (kept.upkeep.due(), kept.unsettled) == (None, 0)


def test_new_keys_are_a_task_of_their_own(kept: Kept) -> None:
    (Path(kept.state.settings.state_dir) / "keys" / "lease.pem").touch()
    kept.now += 1.0
    assert kept.upkeep.due() == Task("", 0, FollowKeys())


def test_tasks_that_stay_due_come_in_turn(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(kept.state.settings.state_dir) / "keys" / "lease.pem").touch()
    monkeypatch.setattr(Upkeep, "_sweep", lambda self: setattr(self, "_has_due", True))
    due = []
    for _ in range(4):
        kept.now += 1.0
        due.append(kept.upkeep.due())
    assert due == [Task("", 0, FollowKeys()), Task("", 0, EndStanding())] * 2


def test_expired_records_are_removed_without_a_pause_while_there_are_more(kept: Kept) -> None:
    old = [(int(kept.clock.time // 60) - 100, f"{number:05}", 0.0) for number in range(2 * proofs.SWEPT_AT_ONCE)]
    with kept.state.database.unit() as connection:
        connection.executemany("INSERT INTO proofs VALUES (?, ?, ?)", old)
    kept.now += 1.0
    for left, patience in ((1, 0.0), (0, 0.0), (0, 1.0)):
        kept.upkeep.due()
        with kept.state.database.unit(writes=False) as connection:
            assert connection.execute("SELECT count(*) FROM proofs").fetchone() == (left * proofs.SWEPT_AT_ONCE,)
        assert kept.upkeep.patience() == patience


def test_no_call_waits_for_a_flush_of_what_is_forgotten(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, flushed = kept.state.database.unit, []

    def watched(*, writes: bool = True, is_durable: bool = True) -> Any:
        flushed.append(writes and is_durable)
        return begin(writes=writes, is_durable=is_durable)

    with kept.state.database.unit() as connection:
        connection.execute("INSERT INTO proofs VALUES (?, 'p', 0.0)", (int(kept.clock.time // 60) - 100,))
    monkeypatch.setattr(kept.state.database, "unit", watched)
    kept.now += 1.0
    kept.upkeep.due()
    assert flushed, "the round was made"
    assert not any(flushed)
    with kept.state.database.unit(writes=False) as connection:
        assert connection.execute("SELECT count(*) FROM proofs").fetchone() == (0,)


def test_an_approval_that_ended_is_kept_for_a_day_after_the_longest_call(kept: Kept) -> None:
    began = kept.clock.time
    ended = changed(make_approval(), state="denied", expires_at=began)
    with kept.state.database.unit() as connection:
        holds.store(connection, ended)
    for later, left in ((25 * 3600, 1), (25 * 3600 + 200, 0)):
        kept.clock.time = began + later
        kept.now += 1.0
        kept.upkeep.due()
        with kept.state.database.unit(writes=False) as connection:
            assert connection.execute("SELECT count(*) FROM approvals").fetchone() == (left,)


def test_fronts_get_no_revocation_of_sessions_with_ended_leases(kept: Kept) -> None:
    kept.state.revoked = {"ended": kept.clock.time - 1.0, "lives": kept.clock.time + 1.0}
    kept.now += 1.0
    kept.upkeep.due()
    assert kept.state.revoked == {"lives": kept.clock.time + 1.0}


def test_nothing_is_forgotten_by_a_clock_that_tells_no_time_and_that_is_said_once(kept: Kept) -> None:
    with capture_logs() as lines:
        for wrong in ("it is wrong", "it is wrong", "", "it is wrong"):
            kept.clock.wrong = wrong
            kept.now += 1.0
            kept.upkeep.due()
    assert [line["event"] for line in lines] == ["what is over could not be forgotten"] * 2
    assert kept.upkeep.patience() == 1.0


def test_erased_requests_leave_the_wal_at_most_once_a_minute(kept: Kept) -> None:
    wal = file_of(kept.state.database).with_name("ledger.sqlite3-wal")
    for later, is_cut in ((1.0, True), (59.0, False), (1.0, True)):
        kept.perform(make_note())
        kept.state.has_erased = True
        assert wal.stat().st_size > 0
        kept.now += later
        kept.upkeep.due()
        assert (not kept.state.has_erased, wal.stat().st_size == 0) == (is_cut, is_cut)


def test_a_wal_in_which_nothing_was_erased_is_left_alone(kept: Kept) -> None:
    assert not kept.state.has_erased
    kept.now += 1.0
    kept.upkeep.due()
    wal = file_of(kept.state.database).with_name("ledger.sqlite3-wal")
    assert wal.stat().st_size > 0


def test_a_notary_that_ends_leaves_nothing_in_the_journal(kept: Kept) -> None:
    kept.perform(make_note())
    assert kept.unsettled == 1
    kept.upkeep.close()
    assert kept.unsettled == 0


def test_a_look_has_ended_before_its_front_gives_up_and_answers_are_remembered_for_longer() -> None:
    assert DEFAULT_LIMITS.look_seconds < NotaryDeadlines().answer_seconds < DEFAULT_LIMITS.remembered_seconds


def test_erased_requests_leave_the_wal_within_a_minute() -> None:
    assert DEFAULT_LIMITS.wal_seconds <= 60.0
