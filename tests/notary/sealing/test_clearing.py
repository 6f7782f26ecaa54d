"""Sealed rows are deleted in slices: the ledger verifies between any two, and the next notary goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.evidence import ReadCheckpoint
from notary.backends.sqlite import connect
from notary.ledger.encrypted_values import VALUE_KEYS
from notary.ledger.kept_values import stored_values
from notary.programs import seal as program
from notary.reading.verify import CHUNK
from notary.reading.whole import WholeWalk
from notary.sealing.clearing import FIRST_SLICE, SLICE_SECONDS, SliceSize, clear_slice
from notary.store.own_pages import erasing
from tests.notary.running import Running, walk
from tests.notary.samples import NOW, make_note, make_open, record_call
from tests.notary.sealing.sealed_ledger import AGE, keys_of, seal_age, verify, write_ages
from tests.support.gateway import wait_for

BENT = "CAST(replace(CAST(bytes AS TEXT), '2026', '2025') AS BLOB)"


@pytest.fixture
def half(notary: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A sealed ledger whose sealing ended after one slice of three events and intents; its kept values are sealed."""
    kept = KeptValues((KeptValue("/amount", "100"),))
    write_ages(notary, more=[make_open(kept=kept) for _ in range(3)])
    keys_of(notary, tmp_path / "keys.json")
    with monkeypatch.context() as change:
        change.setattr(program, "clear_all", lambda perform, _clock: perform(3))
        seal_age(notary, tmp_path / "segments", 1)
    assert len(old_events(notary)) > 3
    return notary


def old_events(notary: Running) -> list[str]:
    """Ids of sealed events that are still in the ledger."""
    with closing(sqlite3.connect(notary.path)) as ledger:
        statement = "SELECT event_id FROM events WHERE time < ? ORDER BY seq"
        return [row[0] for row in ledger.execute(statement, ((NOW + AGE) * 1000,))]


def checked(notary: Running, folder: Path) -> tuple[int, str]:
    """The whole log."""
    ran = verify(notary.path, "--segments", folder / "segments", "--keys", folder / "keys.json")
    return ran.returncode, ran.stdout + ran.stderr


def test_a_ledger_with_rows_that_wait_for_their_deletion_verifies(half: Running, tmp_path: Path) -> None:
    assert checked(half, tmp_path)[0] == 0, checked(half, tmp_path)[1]
    slices = 0
    with half.stranger() as ledger:
        while clear_slice(ledger, 3, is_file=True).left:
            slices += 1
            report = WholeWalk()
            while report.step(ledger):
                pass
            assert report.broken is None
    assert slices > 1
    assert checked(half, tmp_path)[0] == 0
    assert old_events(half) == []


def test_the_next_notary_deletes_the_other_rows(half: Running, tmp_path: Path) -> None:
    front = half.start()
    record_call(front)
    wait_for(lambda: not old_events(half), "the deletion of sealed rows")
    front.ask(ReadCheckpoint())
    report = walk(front)
    assert (report.intact, report.reason) == (True, None)
    half.stop()
    assert checked(half, tmp_path)[0] == 0


def test_the_same_command_deletes_the_other_rows(half: Running, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no checkpoint lies before"):
        seal_age(half, tmp_path / "segments", 1)
    assert old_events(half) == []
    assert checked(half, tmp_path)[0] == 0


def test_nothing_is_copied_while_rows_wait_for_their_deletion(half: Running, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="still being deleted"):
        program.copy_only(half.settings, NOW + 2 * AGE, tmp_path / "segments", "")


def test_deleted_kept_values_leave_nothing_in_the_file(half: Running, tmp_path: Path) -> None:
    with half.stranger() as ledger:
        (key,) = ledger.execute("SELECT key FROM kept_values LIMIT 1").fetchone()
        salt = stored_values(ledger, key)[0].salt or b""
        keys = dict(VALUE_KEYS.living(ledger)).values()
        assert keys
        with erasing(ledger):
            ledger.execute("DELETE FROM journal")  # it is overwritten within a day
        while clear_slice(ledger, 3, is_file=True).left:
            pass
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (segment,) = (tmp_path / "segments").glob("segment-*")
    assert salt in segment.read_bytes()
    left = half.path.read_bytes()
    assert not [secret for secret in (salt, *keys) if secret in left]


FIRST_LEFT = "(SELECT min(seq) FROM events)"
CHANGES = {
    "an event that waits for its deletion": f"UPDATE events SET bytes = {BENT} WHERE seq = {FIRST_LEFT} + 1",
    "its column": f"UPDATE events SET principal = 'x' WHERE seq = {FIRST_LEFT} + 1",
    "an event gone": f"DELETE FROM events WHERE seq = {FIRST_LEFT} + 1",
    "an event from before": f"UPDATE events SET seq = 1 WHERE seq = {FIRST_LEFT}",
    "its receipt": f"UPDATE receipts SET bytes = {BENT} WHERE seq = (SELECT min(seq) FROM receipts)",
    "its kept value": "UPDATE kept_values SET value = x'37' WHERE seq IS NOT NULL",
    "how far the deletion is": "DELETE FROM meta WHERE key = 'cleared'",
    "its hash": "UPDATE meta SET value = replace(value, '\"hash\":\"', '\"hash\":\"0') WHERE key = 'cleared'",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_rows_that_wait_for_their_deletion_is_found(half: Running, tmp_path: Path, name: str) -> None:
    with half.stranger() as ledger:
        assert ledger.execute(CHANGES[name]).rowcount
    code, told = checked(half, tmp_path)
    assert (code, "is broken" in told) == (8, True), told


def test_a_walk_begins_again_when_the_ledger_is_sealed_under_it(notary: Running, tmp_path: Path) -> None:
    for _ in range(CHUNK):
        notary.front.ask(make_note())
    write_ages(notary)
    walked = WholeWalk()
    with closing(connect(notary.path, writes=False)) as ledger:
        assert walked.step(ledger)
        seal_age(notary, tmp_path / "segments", 2)
        while walked.step(ledger):
            pass
    assert walked.broken is None
    assert walked.beginning.events > CHUNK


def test_a_slice_has_as_many_rows_as_fit_into_its_time() -> None:
    size = SliceSize()
    size.took(SLICE_SECONDS / 10)
    assert size.rows == 2 * FIRST_SLICE
    size.took(SLICE_SECONDS * 4)
    assert size.rows == FIRST_SLICE // 2
    for _ in range(20):
        size.took(10.0)
    assert size.rows == 20
