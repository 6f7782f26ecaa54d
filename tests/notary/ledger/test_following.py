"""Events in the order of the chain, as an exporter reads them: where it begins and goes on, and what is missing."""

import json
import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.operations.exporting import EventExport, EventPosition, FollowingEvents, NextEvents
from ipc.operations.status import ReadLedger
from notary.event_export import EventExports
from notary.ledger.chain import event_hash
from notary.programs.accept_rollback import accept
from notary.programs.backup import back_up
from notary.reading import following
from tests.notary.running import Running, query
from tests.notary.samples import make_note
from tests.notary.sealing.sealed_ledger import events_in
from tests.notary.test_checkpoints import grow, older
from tests.support.asking import EventReader
from tests.support.logs import capture_logs

NOT_CONTINUED = "the ledger does not continue the events that were exported: some may be exported again"


def note(notary: Running, *reasons: str) -> None:
    """Write events, and have them settled."""
    for reason in reasons:
        notary.front.ask(make_note(reason=reason))
    query(notary.front)


def reasons(page: FollowingEvents) -> list[str]:
    return [msgspec.json.decode(event)["reason"] for event in page.events]


def end_of(page: FollowingEvents) -> EventPosition:
    """The place behind a page."""
    if not page.events:
        return page.after
    return EventPosition(page.after.seq + len(page.events), event_hash(page.events[-1]))


def after_all(reader: EventReader, **counts: int) -> EventPosition:
    """The place behind all events, which are settled then."""
    page: FollowingEvents = reader.ask(NextEvents())
    while page.events:
        page = reader.ask(NextEvents(end_of(page), **counts))
    return page.after


def export_of(notary: Running) -> EventExport | None:
    told: Any = notary.front.ask(ReadLedger())
    export: EventExport | None = told.export
    return export


def test_a_first_export_begins_with_the_events_of_this_notary(kept: Running) -> None:
    note(kept, "of the notary before")
    kept.stop()
    kept.start()
    note(kept, "a", "b")
    page = kept.event_reader().ask(NextEvents())
    assert reasons(page) == ["a", "b"]


def test_an_export_goes_on_behind_the_events_that_were_settled(kept: Running) -> None:
    reader = kept.event_reader()
    note(kept, "a", "b")
    page = reader.ask(NextEvents())
    assert reader.ask(NextEvents()) == page, "nothing is settled by reading it"
    note(kept, "c")
    after = reader.ask(NextEvents(end_of(page)))
    assert (after.after, reasons(after)) == (end_of(page), ["c"])
    assert reader.ask(NextEvents(end_of(after))).events == []


def test_the_next_exporter_and_the_next_notary_go_on_where_the_last_one_ended(kept: Running) -> None:
    note(kept, "a")
    after_all(kept.event_reader())
    note(kept, "b")
    assert reasons(kept.event_reader().ask(NextEvents())) == ["b"]
    kept.stop()
    kept.start()
    note(kept, "c")
    assert reasons(kept.event_reader().ask(NextEvents())) == ["b", "c"]


def test_a_page_has_a_bound_of_events_and_of_bytes(kept: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_AT_ONCE", 2)
    monkeypatch.setattr(following, "MOST_EVENTS", 3)
    note(kept, "a", "b", "c", "d", "e")
    reader = kept.event_reader()
    page = reader.ask(NextEvents())
    assert reasons(page) == ["a", "b", "c"]
    monkeypatch.setattr(following, "MOST_EVENT_BYTES", 1)
    assert reasons(reader.ask(NextEvents(end_of(page)))) == ["d"], "one event at least"


def test_the_status_says_how_many_events_wait_and_how_they_ended(kept: Running) -> None:
    assert export_of(kept) is None
    note(kept, "a", "b")
    reader = kept.event_reader()
    page = reader.ask(NextEvents())
    assert export_of(kept) == EventExport(2, {"exported": 0, "dropped": 0, "skipped": 0}, 0)
    reader.ask(NextEvents(end_of(page), exported=1, dropped=1))
    assert export_of(kept) == EventExport(0, {"exported": 1, "dropped": 1, "skipped": 0}, 0)


@pytest.mark.parametrize("seq", [-1, 2**63])
def test_a_place_that_no_ledger_has_ends_the_channel_of_its_exporter(kept: Running, seq: int) -> None:
    reader = kept.event_reader()
    with capture_logs() as lines, pytest.raises((ChannelClosed, OSError)):
        reader.ask(NextEvents(EventPosition(seq)))
    assert "the exporter's channel ended" in [line["event"] for line in lines]


@pytest.mark.parametrize("seq", [1, 2, 40, 2**63 - 1])
def test_a_place_of_another_ledger_is_told_and_the_export_begins_with_this_notary(kept: Running, seq: int) -> None:
    note(kept, "a", "b")
    reader = kept.event_reader()
    with capture_logs() as lines:
        page = reader.ask(NextEvents(EventPosition(seq, "sha256:" + "0" * 64)))
    assert reasons(page) == ["a", "b"]
    assert [line["position"] for line in lines if line["event"] == NOT_CONTINUED] == [seq]
    told = export_of(kept)
    assert told is not None
    assert told.changes == 1
    assert reader.ask(NextEvents(end_of(page))).events == []


def test_kept_places_get_fewer_with_their_age_and_are_bounded() -> None:
    export = EventExports()
    for seq in range(0, 30_000, 3):
        export.note(EventPosition(seq, str(seq)), 0, 0)
    distances = [29_997 - place.seq for place in export.reached]
    assert distances[0] == 0
    assert len(distances) <= 16
    assert all(later <= 4 * max(1, nearer) for nearer, later in pairwise(distances[1:]))


def test_an_exporter_that_asks_for_places_at_random_fills_no_log(kept: Running) -> None:
    note(kept, "a")
    reader = kept.event_reader()
    with capture_logs() as lines:
        for number in range(50):
            reader.ask(NextEvents(EventPosition(number + 2, f"sha256:{number}")))
    assert [line["event"] for line in lines].count(NOT_CONTINUED) == 1
    told = export_of(kept)
    assert told is not None
    assert told.changes == 50


def test_a_file_that_makes_no_sense_is_told_and_the_export_begins_with_this_notary(kept: Running) -> None:
    note(kept, "a")
    after_all(kept.event_reader())
    kept.stop()
    (kept.folder / "exported-events").write_bytes(b'{"seq": "one"}')
    with capture_logs() as lines:
        kept.start()
    note(kept, "b")
    assert reasons(kept.event_reader().ask(NextEvents())) == ["b"]
    told = "the place up to which events were exported can't be read: all events before this start are left out"
    assert [line["file"] for line in lines if line["event"] == told] == [str(kept.folder / "exported-events")]


def test_a_file_that_can_not_be_written_is_told_once_and_the_export_goes_on(kept: Running) -> None:
    (kept.folder / "exported-events").mkdir()
    reader = kept.event_reader()
    after = None
    with capture_logs() as lines:
        for reason in "ab":
            note(kept, reason)
            page = reader.ask(NextEvents(after))
            assert reasons(page) == [reason]
            after = end_of(page)
    told = [line["event"] for line in lines if "exported" in line["event"]]
    assert told.count("the place up to which events were exported can't be kept") == 1


def exported(reader: EventReader) -> FollowingEvents:
    """Settle every event of the ledger; the first page."""
    first: FollowingEvents = reader.ask(NextEvents())
    page = first
    while page.events:
        page = reader.ask(NextEvents(end_of(page)))
    return first


def test_every_event_since_is_exported_and_the_first_of_them_says_that_it_was_put_back(notary: Running) -> None:
    grow(notary)
    query(notary.front)
    exported(notary.event_reader())
    grow(notary)
    put_back = older(notary)
    grow(notary)
    query(notary.front)
    exported(notary.event_reader())
    notary.stop()
    put_back()
    accept(notary.settings, "the disk died")
    notary.start()
    note(notary, "since")
    with capture_logs() as lines:
        page = exported(notary.event_reader())
    with closing(sqlite3.connect(notary.path)) as ledger:
        every = events_in(ledger)
    again = [json.loads(event) for event in page.events]
    assert again == every[page.after.seq :], "up to the end, without a gap"
    assert [event["event_type"] for event in every].index("RollbackAccepted") >= page.after.seq > 0
    assert [line["event"] for line in lines].count(NOT_CONTINUED) == 1
    assert notary.front.ask(ReadLedger()).export.changes == 1


def test_a_backup_that_is_restored_elsewhere_exports_the_events_that_waited_when_it_was_taken(
    notary: Running, tmp_path: Path
) -> None:
    note(notary, "taken by the collector")
    exported(notary.event_reader())
    note(notary, "waits")
    back_up(notary.settings, tmp_path / "kept", with_keys=False)
    notary.stop()
    for file in (*notary.folder.glob("ledger.sqlite3*"), notary.folder / "exported-events"):
        file.unlink()
    for name in ("ledger.sqlite3", "exported-events"):
        shutil.copy2(tmp_path / "kept" / name, notary.folder)
    accept(notary.settings, "the host is lost")
    notary.start()
    query(notary.front)
    events = [json.loads(event) for event in exported(notary.event_reader()).events]
    assert "waits" in events[0]["reason"]
    assert "RollbackAccepted" in [event["event_type"] for event in events]
    assert "taken by the collector" not in [event.get("reason") for event in events]
