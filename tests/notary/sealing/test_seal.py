"""Sealing moves a whole range to a file that verifies by itself, and the ledger goes on behind it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.erasing import EraseKept
from ipc.operations.evidence import ReadCheckpoint
from notary.sealing.segment import digest_of, write_segment
from tests.notary.running import Running, execute
from tests.notary.samples import ERASED, NOW, make_open, make_result
from tests.notary.sealing.sealed_ledger import AGE, CALLS, events_in, keys_of, seal_age, verify, write_ages, write_calls


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_sealed_ledger_and_its_segments_verify_alone_and_together(notary: Running, tmp_path: Path) -> None:
    write_ages(notary)
    out, keys = tmp_path / "segments", keys_of(notary, tmp_path / "keys.json")
    assert "10 events and 5 intents" in seal_age(notary, out, 1)
    seal_age(notary, out, 2)
    first, second = sorted(out.iterdir())
    ledger = notary.settings.ledger_file
    for places in ([first], [second], [second, first], [ledger, "--keys", keys], [first, "--keys", keys]):
        ran = verify(*places)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = verify(ledger, "--segments", out, "--keys", keys)
    assert (ran.returncode, ran.stdout.count(" is intact: ")) == (0, 3), ran.stdout + ran.stderr
    assert verify(ledger).returncode == 69


def test_a_range_whose_ledger_got_another_name_since_is_sealed_and_verifies(notary: Running, tmp_path: Path) -> None:
    write_calls(notary, NOW)
    renamed = msgspec.structs.replace(notary.settings.evidence, origin="new.example")
    notary.settings = msgspec.structs.replace(notary.settings, evidence=renamed)
    notary.restart()
    write_calls(notary, NOW + AGE)
    notary.stop()
    assert "10 events and 5 intents" in seal_age(notary, tmp_path / "segments", 1)
    ran = verify(*(tmp_path / "segments").iterdir())
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_event_names_the_very_bytes_of_the_segment(notary: Running, tmp_path: Path) -> None:
    write_ages(notary)
    seal_age(notary, tmp_path / "segments", 1)
    (segment,) = (tmp_path / "segments").iterdir()
    with closing(sqlite3.connect(notary.settings.ledger_file)) as ledger:
        event = events_in(ledger)[-1]
    with closing(sqlite3.connect(segment)) as file:
        moved = events_in(file)
    assert (event["event_type"], event["change"]["digest"]) == ("LedgerSealed", digest_of(segment))
    assert (event["change"]["events"], event["change"]["segment"]) == (len(moved), segment.name)
    assert segment.stat().st_mode & 0o777 == 0o600


def test_nothing_behind_a_call_without_an_end_is_sealed(notary: Running, tmp_path: Path) -> None:
    write_calls(notary, NOW)
    asked = make_open()
    notary.front.begin(asked)
    write_calls(notary, NOW + AGE)
    write_calls(notary, NOW + 2 * AGE)
    notary.stop()
    assert f"the intent {asked.intent_id}" in seal_age(notary, tmp_path / "segments", 2)
    with closing(sqlite3.connect(notary.settings.ledger_file)) as ledger:
        assert ledger.execute("SELECT count(*) FROM intents").fetchone() == (2 * CALLS + 1,)


def test_a_call_that_ends_behind_the_cut_is_counted_on_both_sides(notary: Running, tmp_path: Path) -> None:
    write_calls(notary, NOW)
    asked = make_open()
    waiting = notary.front.begin(asked)
    notary.front.ask(ReadCheckpoint())
    notary.clock.time = NOW + AGE
    notary.front.finish(asked, waiting, make_result())
    write_calls(notary, NOW + AGE + 1)
    notary.stop()
    seal_age(notary, tmp_path / "segments", 1)
    keys = keys_of(notary, tmp_path / "keys.json")
    ran = verify(notary.settings.ledger_file, "--segments", tmp_path / "segments", "--keys", keys)
    assert ran.returncode == 0, ran.stdout


def test_kept_values_go_with_their_events(notary: Running, tmp_path: Path) -> None:
    kept = KeptValues((KeptValue("/amount", "100"), KeptValue("/name", '"Ann"')), "{name}")
    write_calls(notary, NOW)
    notary.clock.time = NOW + 7200  # of the checkpoints of an hour one is kept
    notary.front.ask(make_open(kept=kept))
    erased = notary.last_event()["event_id"]
    notary.front.ask(make_open(kept=kept))
    notary.front.ask(ReadCheckpoint())
    notary.clock.time = NOW + AGE
    notary.front.ask(make_open(kept=kept))
    notary.front.ask(EraseKept(ERASED, event_id=erased))
    write_calls(notary, NOW + AGE + 1)
    notary.stop()
    seal_age(notary, tmp_path / "segments", 1)
    (segment,) = (tmp_path / "segments").iterdir()
    counts = []
    for file in (segment, notary.path):
        with closing(sqlite3.connect(file)) as connection:
            counts.append(connection.execute("SELECT count(*), count(value) FROM kept_values").fetchone())
    assert counts == [(4, 2), (2, 2)]
    keys = keys_of(notary, tmp_path / "keys.json")
    ran = verify(notary.path, "--segments", tmp_path / "segments", "--keys", keys)
    assert ran.returncode == 0, ran.stdout
    execute(segment, "DELETE FROM kept_values WHERE value IS NOT NULL")
    assert "is missing" in verify(segment).stdout


def test_no_value_that_age_will_erase_is_sealed(notary: Running, tmp_path: Path) -> None:
    notary.clock.time = NOW
    notary.front.ask(make_open(kept=KeptValues((KeptValue("/to", '"a-secret-account"'),))))
    write_ages(notary)
    kept = notary.settings
    aging = msgspec.structs.replace(kept.evidence, keep_days=30)
    notary.settings = msgspec.structs.replace(kept, evidence=aging)
    with pytest.raises(ValueError, match=r"evidence\.keep_days erases no value in a segment"):
        seal_age(notary, tmp_path / "segments", 1)
    assert names(tmp_path / "segments") == []
    notary.execute("UPDATE kept_values SET value = NULL, salt = NULL, erased_by = 1")
    with pytest.raises(ValueError, match="does not verify"):  # no event erased it
        seal_age(notary, tmp_path / "segments", 1)
    notary.settings = kept


def test_a_segment_with_more_than_a_ledger_that_was_put_back_is_never_removed(notary: Running, tmp_path: Path) -> None:
    write_ages(notary, 2)
    shutil.copytree(notary.folder, tmp_path / "copy")
    notary.start()
    for age in (2, 3):
        write_calls(notary, NOW + age * AGE)
    notary.stop()
    out = tmp_path / "segments"
    seal_age(notary, out, 3)
    (segment,) = out.iterdir()
    before = segment.read_bytes()
    shutil.rmtree(notary.folder)
    shutil.copytree(tmp_path / "copy", notary.folder)
    with pytest.raises(ValueError, match="has events that this ledger lacks"):
        seal_age(notary, out, 1)
    assert segment.read_bytes() == before


def test_no_segment_keeps_values_that_another_gateway_erases_while_it_is_written(
    notary: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notary.clock.time = NOW
    notary.front.ask(make_open(kept=KeptValues((KeptValue("/to", '"a-secret-account"'),))))
    write_ages(notary)

    def written_and_erased(*given: Any) -> Any:
        segment = write_segment(*given)
        with notary.stranger() as connection:
            (newest,) = connection.execute("SELECT max(seq) FROM events").fetchone()
            connection.execute("UPDATE kept_values SET value = NULL, salt = NULL, erased_by = ?", (newest + 1,))
        return segment

    monkeypatch.setattr("notary.sealing.copying.write_segment", written_and_erased)
    with pytest.raises(ValueError, match="were erased meanwhile"):
        seal_age(notary, tmp_path / "segments", 1)
    assert names(tmp_path / "segments") == []
